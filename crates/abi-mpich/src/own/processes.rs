//! Procedures whose strings, arrays or constants have other lengths or values in MPICH's ABI.

use crate::arguments::{Handles, OutHandle, buffer_in, buffer_in_mut, buffer_out};
use crate::codes::code_out;
use crate::generated::standard;
use crate::generated::tables::*;
use crate::handles::{Class, Comm, Datatype, File, Group, Info, Request, Session};
use std::ffi::{CStr, c_char, c_int, c_void};

/// MPI_Abi_get_version: this library does not have the standard's ABI, which is told as MPICH tells it.
///
/// # Safety
/// As for the procedure.
pub unsafe fn abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) -> c_int {
    // SAFETY: the caller's promise; the call checks the places.
    unsafe {
        let code = standard::MPI_Abi_get_version(abi_major, abi_minor);
        if code == 0 {
            abi_major.write(-1);
            abi_minor.write(-1);
        }
        code_out(code)
    }
}

macro_rules! detach {
    ($($name:ident $procedure:ident $count:ty $(, $object:ident $class:ident)?;)*) => {$(
        /// # Safety
        /// As for the procedure.
        pub unsafe fn $name($($object: c_int,)? buffer_addr: *mut c_void, size: *mut $count) -> c_int {
            // SAFETY: the caller's promise.
            unsafe {
                let code = standard::$procedure($($class::input($object),)? buffer_addr, size);
                if code == 0 {
                    buffer_out(buffer_addr);
                }
                code_out(code)
            }
        }
    )*};
}

detach! {
    buffer_detach MPI_Buffer_detach c_int;
    buffer_detach_c MPI_Buffer_detach_c i64;
    comm_detach_buffer MPI_Comm_detach_buffer c_int, comm Comm;
    comm_detach_buffer_c MPI_Comm_detach_buffer_c i64, comm Comm;
    session_detach_buffer MPI_Session_detach_buffer c_int, session Session;
    session_detach_buffer_c MPI_Session_detach_buffer_c i64, session Session;
}

/// Converts the error codes of processes that were started: one for each process that there is now, at least.
///
/// # Safety
/// The call that starts processes has succeeded and filled the array, unless it is MPI_ERRCODES_IGNORE.
unsafe fn convert_codes(intercomm: usize, codes: *mut c_int) {
    let mut started = 0;
    // SAFETY: a communicator that the call has just made, and a place.
    if codes.is_null() || unsafe { standard::MPI_Comm_remote_size(intercomm, &mut started) } != 0 {
        return;
    }
    for index in 0..usize::try_from(started).unwrap_or(0) {
        // SAFETY: the caller's promise.
        unsafe {
            let code = codes.add(index);
            code.write(code_out(code.read()));
        }
    }
}

/// # Safety
/// As for the procedure.
#[allow(clippy::too_many_arguments)]
pub unsafe fn comm_spawn(
    command: *const c_char,
    argv: *mut c_void,
    maxprocs: c_int,
    info: c_int,
    root: c_int,
    comm: c_int,
    intercomm: *mut c_int,
    array_of_errcodes: *mut c_int,
) -> c_int {
    let (info, root, comm) = (Info::input(info), rank_in(root), Comm::input(comm));
    let mut handle = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let place = if intercomm.is_null() { std::ptr::null_mut() } else { &raw mut handle };
        let code =
            standard::MPI_Comm_spawn(command, argv, maxprocs, info, root, comm, place, array_of_errcodes);
        if handle != 0 {
            intercomm.write(Comm::output(handle));
        }
        if code == 0 {
            convert_codes(handle, array_of_errcodes);
        }
        code_out(code)
    }
}

/// # Safety
/// As for the procedure.
#[allow(clippy::too_many_arguments)]
pub unsafe fn comm_spawn_multiple(
    count: c_int,
    array_of_commands: *mut c_void,
    array_of_argv: *mut c_void,
    array_of_maxprocs: *const c_int,
    array_of_info: *const c_int,
    root: c_int,
    comm: c_int,
    intercomm: *mut c_int,
    array_of_errcodes: *mut c_int,
) -> c_int {
    let mut handle = 0;
    // SAFETY: the caller's promise. The arrays are significant only at the root.
    unsafe {
        let mut rank = 0;
        let at_root = Sizeless::is_root(Comm::input(comm), root, &mut rank);
        let infos = Handles::new::<Info>(array_of_info, if at_root { i64::from(count) } else { 0 });
        let place = if intercomm.is_null() { std::ptr::null_mut() } else { &raw mut handle };
        let code = standard::MPI_Comm_spawn_multiple(
            count,
            array_of_commands,
            array_of_argv,
            array_of_maxprocs,
            infos.place(),
            rank_in(root),
            Comm::input(comm),
            place,
            array_of_errcodes,
        );
        if handle != 0 {
            intercomm.write(Comm::output(handle));
        }
        if code == 0 {
            convert_codes(handle, array_of_errcodes);
        }
        code_out(code)
    }
}

/// Questions about a communicator that raise no error.
struct Sizeless;

impl Sizeless {
    /// Whether this process has the rank `root` in the communicator.
    fn is_root(comm: usize, root: c_int, rank: &mut c_int) -> bool {
        let (mut senders, mut receivers) = (0, 0);
        // SAFETY: both entries take any number as a handle, and the first says whether it is one; the places live.
        unsafe {
            standard::MPIX_Comm_exchange_sizes(comm, 0, &mut senders, &mut receivers) == 0
                && standard::MPI_Comm_rank(comm, rank) == 0
                && *rank == root
        }
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn file_fromint(file: c_int) -> usize {
    // MPI_FILE_NULL is 0; any other handle is at least 4096.
    if (1..4096).contains(&file) { 0 } else { file as u32 as usize }
}

/// # Safety
/// As for the procedure.
pub unsafe fn file_toint(file: usize) -> c_int {
    file as u32 as c_int
}

/// # Safety
/// As for the procedure.
pub unsafe fn file_set_view(
    fh: usize,
    disp: i64,
    etype: c_int,
    filetype: c_int,
    datarep: *const c_char,
    info: c_int,
) -> c_int {
    let disp = match disp {
        _ if disp == MPI_DISPLACEMENT_CURRENT.0 => MPI_DISPLACEMENT_CURRENT.1,
        // The standard's value means nothing here.
        _ if disp == MPI_DISPLACEMENT_CURRENT.1 => i64::MIN,
        _ => disp,
    };
    // SAFETY: the caller's promise.
    code_out(unsafe {
        standard::MPI_File_set_view(
            File::input(fh),
            disp,
            Datatype::input(etype),
            Datatype::input(filetype),
            datarep,
            Info::input(info),
        )
    })
}

/// Calls with a place for a string of the standard's length, and gives what fits into MPICH's; the length of that.
///
/// # Safety
/// `place` is null or has `mine` characters; the call writes at most `theirs` characters, with a zero at the end.
unsafe fn shortened(
    place: *mut c_char,
    (mine, theirs): (usize, usize),
    call: impl FnOnce(*mut c_char) -> c_int,
) -> (c_int, usize, bool) {
    if place.is_null() {
        return (call(place), 0, true);
    }
    let mut text = vec![0 as c_char; theirs + 1];
    let code = call(text.as_mut_ptr());
    // SAFETY: the buffer ends with a zero whatever the call wrote.
    let whole = unsafe { CStr::from_ptr(text.as_ptr()) }.to_bytes().len();
    let length = whole.min(mine - 1);
    if code == 0 {
        // SAFETY: the caller's promise; length + 1 is not more than `mine`.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), place, length);
            place.add(length).write(0);
        }
    }
    (code, length, whole == length)
}

/// # Safety
/// As for the procedure.
pub unsafe fn get_processor_name(name: *mut c_char, resultlen: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let (code, length, _) = shortened(name, MPI_MAX_PROCESSOR_NAME, |place| {
            standard::MPI_Get_processor_name(place, resultlen)
        });
        if code == 0 {
            resultlen.write(length as c_int);
        }
        code_out(code)
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn info_get_nthkey(info: c_int, n: c_int, key: *mut c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let (code, ..) = shortened(key, MPI_MAX_INFO_KEY, |place| {
            standard::MPI_Info_get_nthkey(Info::input(info), n, place)
        });
        code_out(code)
    }
}

/// Raises an error that this library finds itself: something is longer than MPICH's programs have room for.
fn too_long(class: (c_int, c_int)) -> c_int {
    const MPI_COMM_SELF: c_int = 0x4400_0001;
    // SAFETY: a communicator and a code. Errors that belong to no object go to the handler of this communicator.
    unsafe { standard::MPI_Comm_call_errhandler(Comm::input(MPI_COMM_SELF), class.1) };
    class.0
}

/// # Safety
/// As for the procedure.
pub unsafe fn info_set(info: c_int, key: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: the caller's promise: strings, or null, which the call finds.
    unsafe {
        if !key.is_null() && libc::strlen(key) >= MPI_MAX_INFO_KEY.0 {
            return too_long(MPI_ERR_INFO_KEY);
        }
        code_out(standard::MPI_Info_set(Info::input(info), key, value))
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn open_port(info: c_int, port_name: *mut c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let (code, _, whole) = shortened(port_name, MPI_MAX_PORT_NAME, |place| {
            standard::MPI_Open_port(Info::input(info), place)
        });
        if code == 0 && !whole { too_long(MPI_ERR_PORT) } else { code_out(code) }
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn lookup_name(service_name: *const c_char, info: c_int, port_name: *mut c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let (code, _, whole) = shortened(port_name, MPI_MAX_PORT_NAME, |place| {
            standard::MPI_Lookup_name(service_name, Info::input(info), place)
        });
        if code == 0 && !whole { too_long(MPI_ERR_PORT) } else { code_out(code) }
    }
}

/// # Safety
/// As for the procedure.
pub unsafe fn group_translate_ranks(
    group1: c_int,
    n: c_int,
    ranks1: *const c_int,
    group2: c_int,
    ranks2: *mut c_int,
) -> c_int {
    let length = usize::try_from(n).unwrap_or(0);
    // SAFETY: the caller's promise: both arrays have n elements, or are null.
    unsafe {
        let given: Vec<c_int> = match ranks1.is_null() {
            true => Vec::new(),
            false => (0..length).map(|index| rank_in(ranks1.add(index).read())).collect(),
        };
        let given = if ranks1.is_null() { ranks1 } else { given.as_ptr() };
        let code =
            standard::MPI_Group_translate_ranks(Group::input(group1), n, given, Group::input(group2), ranks2);
        if code == 0 && !ranks2.is_null() {
            for index in 0..length {
                let rank = ranks2.add(index);
                rank.write(rank_out(rank.read()));
            }
        }
        code_out(code)
    }
}

/// MPI_Pcontrol, whose further arguments nobody looks at.
///
/// # Safety
/// As for the procedure.
pub unsafe fn pcontrol(level: c_int) -> c_int {
    // SAFETY: the caller's promise.
    code_out(unsafe { standard::MPI_Pcontrol(level) })
}

macro_rules! partitioned {
    ($($name:ident $procedure:ident $buffer:ty, $convert:ident;)*) => {$(
        /// In MPICH's header the count is an MPI_Count.
        ///
        /// # Safety
        /// As for the procedure.
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            buf: $buffer,
            partitions: c_int,
            count: i64,
            datatype: c_int,
            dest: c_int,
            tag: c_int,
            comm: c_int,
            info: c_int,
            request: *mut c_int,
        ) -> c_int {
            let mut request = OutHandle::<Request>::new(request);
            // SAFETY: the caller's promise.
            unsafe {
                let code = standard::$procedure(
                    $convert(buf),
                    partitions,
                    count,
                    Datatype::input(datatype),
                    rank_in(dest),
                    tag_in(tag),
                    Comm::input(comm),
                    Info::input(info),
                    request.place(),
                );
                request.finish();
                code_out(code)
            }
        }
    )*};
}

partitioned! {
    psend_init MPI_Psend_init_c *const c_void, buffer_in;
    precv_init MPI_Precv_init_c *mut c_void, buffer_in_mut;
}
