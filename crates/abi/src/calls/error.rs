//! Bodies of procedures: error.

use super::prelude::*;
use parnass_mpi::errhandler::{ErrhandlerKind, ErrhandlerSlot};
use parnass_mpi::error_registry::ErrorRegistry;

/// What the program has added. It may do so before MPI_Init and after MPI_Finalize.
static REGISTRY: ErrorRegistry = ErrorRegistry::new();

/// The error handler of MPI_FILE_NULL: the initial one of every file (MPI 5.0, section 9.3.3).
static FILE_ERRHANDLER: ErrhandlerSlot = ErrhandlerSlot::new(Errhandler::Return);

/// MPI_LASTUSEDCODE.
pub(super) fn last_used_code() -> i32 {
    REGISTRY.last_used_code()
}

/// Makes an error handler of a function of the program.
fn create(
    kind: ErrhandlerKind,
    function: unsafe extern "C" fn(*mut usize, *mut i32, ...),
    errhandler: &OutHandle<Errhandler>,
) -> Result<()> {
    let callback = move |mut handle: usize, mut code: i32| {
        // SAFETY: the program gave a function of this signature; both places live during the call.
        unsafe { function(&mut handle, &mut code) };
        code
    };
    errhandler.set(Arc::new(Errhandler::user(kind, Box::new(callback))))
}

/// An error unless the handler was created for this kind of object, or is predefined.
pub(super) fn check_kind(errhandler: &Errhandler, kind: ErrhandlerKind, object: &str) -> Result<()> {
    match errhandler.kind() {
        Some(own) if own != kind => Err(Error::new(
            MPI_ERR_ERRHANDLER,
            format!(
                "errhandler was created by {}, but the object is a {object}; use a handler that was created for it",
                match own {
                    ErrhandlerKind::Communicator => "MPI_Comm_create_errhandler",
                    ErrhandlerKind::File => "MPI_File_create_errhandler",
                    ErrhandlerKind::Session => "MPI_Session_create_errhandler",
                    ErrhandlerKind::Window => "MPI_Win_create_errhandler",
                }
            ),
        )),
        _ => Ok(()),
    }
}

/// Runs an error handler because the program asks for it. A handler that ends the job gets an error to end it with.
pub(super) fn run(errhandler: Errhandler, handle: usize, code: i32) -> Result<()> {
    match errhandler {
        Errhandler::Return => Ok(()),
        Errhandler::User(user) => {
            user.call(handle, code);
            Ok(())
        }
        Errhandler::Fatal | Errhandler::Abort => {
            let text = REGISTRY.text_of(code).unwrap_or_default();
            Err(Error::new(code, format!("the program raised error {code} ({})", text.escape_ascii())))
        }
    }
}

/// MPI_Add_error_class.
pub fn add_error_class(_call: &Call, errorclass: Out<i32>) -> Result<()> {
    errorclass.set(REGISTRY.add_class());
    Ok(())
}

/// MPI_Add_error_code.
pub fn add_error_code(_call: &Call, errorclass: i32, errorcode: Out<i32>) -> Result<()> {
    errorcode.set(REGISTRY.add_code(errorclass)?);
    Ok(())
}

/// MPI_Add_error_string.
pub fn add_error_string(_call: &Call, errorcode: i32, string: &[u8]) -> Result<()> {
    REGISTRY.set_text(errorcode, string)
}

/// MPI_Comm_call_errhandler.
pub fn comm_call_errhandler(_call: &Call, comm: &Arc<Communicator>, errorcode: i32) -> Result<()> {
    run(comm.errhandler(), super::comm::handle_of(comm), errorcode)
}

/// MPI_Comm_create_errhandler.
pub fn comm_create_errhandler(
    _call: &Call,
    comm_errhandler_fn: Function<callbacks::MPI_Comm_errhandler_function>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    create(ErrhandlerKind::Communicator, comm_errhandler_fn.required("comm_errhandler_fn")?, &errhandler)
}

/// MPI_Comm_get_errhandler.
pub fn comm_get_errhandler(
    _call: &Call,
    comm: &Arc<Communicator>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    errhandler.set(Arc::new(comm.errhandler()))
}

/// MPI_Comm_set_errhandler.
pub fn comm_set_errhandler(
    _call: &Call,
    comm: &Arc<Communicator>,
    errhandler: &Arc<Errhandler>,
) -> Result<()> {
    check_kind(errhandler, ErrhandlerKind::Communicator, "communicator")?;
    comm.set_errhandler(Errhandler::clone(errhandler));
    Ok(())
}

/// MPI_Errhandler_free.
pub fn errhandler_free(_call: &Call, errhandler: InOutHandle<Errhandler>) -> Result<()> {
    // Predefined ones may be freed: MPI_Comm_get_errhandler may have returned them (MPI 5.0, section 9.3.5).
    errhandler.release();
    Ok(())
}

/// MPI_Error_class.
pub fn error_class(_call: &Call, errorcode: i32, errorclass: Out<i32>) -> Result<()> {
    errorclass.set(REGISTRY.class_of(errorcode)?);
    Ok(())
}

/// MPI_Error_string: the text of the code, and what the last error with this code on this thread was about.
pub fn error_string(_call: &Call, errorcode: i32, string: StringOut) -> Result<()> {
    let mut text = REGISTRY.text_of(errorcode)?.into_vec();
    if errorcode <= MPI_ERR_LASTCODE
        && let Some(detail) = crate::call::last_error(errorcode)
    {
        text.extend_from_slice(b": ");
        text.extend_from_slice(detail.as_bytes());
    }
    string.set(&text);
    Ok(())
}

/// The error handler of a file, that of MPI_FILE_NULL if there is no such file; whose handle it gets, and what messages call the
/// holder.
pub(crate) fn of_file(handle: usize) -> (Errhandler, usize, String) {
    match File::table().find(handle) {
        Some(file) => (file.errhandler(), handle, file.describe()),
        None => (FILE_ERRHANDLER.get(), MPI_FILE_NULL, "MPI_FILE_NULL".to_owned()),
    }
}

/// A file, or `None` for MPI_FILE_NULL.
fn file_or_null(file: Handle<File>, name: &str) -> Result<Option<Held<File>>> {
    if file.is_null() { Ok(None) } else { file.get(name).map(Some) }
}

/// MPI_File_call_errhandler.
pub fn file_call_errhandler(_call: &Call, fh: Handle<File>, errorcode: i32) -> Result<()> {
    file_or_null(fh, "fh")?;
    let (errhandler, handle, _) = of_file(fh.value());
    run(errhandler, handle, errorcode)
}

/// MPI_File_create_errhandler.
pub fn file_create_errhandler(
    _call: &Call,
    file_errhandler_fn: Function<callbacks::MPI_File_errhandler_function>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    create(ErrhandlerKind::File, file_errhandler_fn.required("file_errhandler_fn")?, &errhandler)
}

/// MPI_File_get_errhandler.
pub fn file_get_errhandler(
    _call: &Call,
    file: Handle<File>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    file_or_null(file, "file")?;
    errhandler.set(Arc::new(of_file(file.value()).0))
}

/// MPI_File_set_errhandler.
pub fn file_set_errhandler(_call: &Call, file: Handle<File>, errhandler: &Arc<Errhandler>) -> Result<()> {
    let held = file_or_null(file, "file")?;
    check_kind(errhandler, ErrhandlerKind::File, "file")?;
    let errhandler = Errhandler::clone(errhandler);
    match held {
        Some(file) => file.set_errhandler(errhandler),
        None => FILE_ERRHANDLER.set(errhandler),
    }
    Ok(())
}

/// MPI_Remove_error_class.
pub fn remove_error_class(_call: &Call, errorclass: i32) -> Result<()> {
    REGISTRY.remove_class(errorclass)
}

/// MPI_Remove_error_code.
pub fn remove_error_code(_call: &Call, errorcode: i32) -> Result<()> {
    REGISTRY.remove_code(errorcode)
}

/// MPI_Remove_error_string.
pub fn remove_error_string(_call: &Call, errorcode: i32) -> Result<()> {
    REGISTRY.remove_text(errorcode)
}

/// MPI_Session_create_errhandler.
pub fn session_create_errhandler(
    _call: &Call,
    session_errhandler_fn: Function<callbacks::MPI_Session_errhandler_function>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    create(ErrhandlerKind::Session, session_errhandler_fn.required("session_errhandler_fn")?, &errhandler)
}

/// MPI_Win_create_errhandler.
pub fn win_create_errhandler(
    _call: &Call,
    win_errhandler_fn: Function<callbacks::MPI_Win_errhandler_function>,
    errhandler: OutHandle<Errhandler>,
) -> Result<()> {
    create(ErrhandlerKind::Window, win_errhandler_fn.required("win_errhandler_fn")?, &errhandler)
}

/// MPI_Win_call_errhandler.
pub fn win_call_errhandler(_call: &Call, win: &Arc<Window>, errorcode: i32) -> Result<()> {
    run(win.errhandler(), super::window::handle_of(win), errorcode)
}

/// MPI_Win_get_errhandler.
pub fn win_get_errhandler(_call: &Call, win: &Arc<Window>, errhandler: OutHandle<Errhandler>) -> Result<()> {
    errhandler.set(Arc::new(win.errhandler()))
}

/// MPI_Win_set_errhandler.
pub fn win_set_errhandler(_call: &Call, win: &Arc<Window>, errhandler: &Arc<Errhandler>) -> Result<()> {
    check_kind(errhandler, ErrhandlerKind::Window, "window")?;
    win.set_errhandler(Errhandler::clone(errhandler));
    Ok(())
}
