//! The standard's library: found beside this one, opened with a scope of its own, its procedures in a table.

use crate::generated::standard::{COUNT, NAMES};
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What the standard's library is called.
const STANDARD: &str = "libmpi_abi.so.1";

/// The addresses of the procedures, in the order of [`NAMES`]. Each is that of a function from the start.
static TABLE: [AtomicPtr<c_void>; COUNT] =
    [const { AtomicPtr::new(unavailable as *const () as *mut c_void) }; COUNT];

/// Why the library or one of its procedures is not there.
static FAILURE: OnceLock<String> = OnceLock::new();

/// The loader runs this before anything of the program that could call MPI.
#[used]
#[unsafe(link_section = ".init_array")]
static FILL: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = fill;

/// The address of a procedure of the standard's library; of [`unavailable`] if there is none.
#[inline(always)]
pub fn address(index: usize) -> *const c_void {
    // Relaxed: the table is filled while the loader holds its lock, before the program can call.
    TABLE[index].load(Ordering::Relaxed)
}

extern "C" fn fill(_: c_int, _: *const *const c_char, _: *const *const c_char) {
    let library = match open() {
        Ok(library) => library,
        Err(reason) => {
            let _ = FAILURE.set(reason);
            return;
        }
    };
    for (place, name) in TABLE.iter().zip(NAMES) {
        // SAFETY: an open library and a string that ends with a zero.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        if found.is_null() {
            let name = name.to_string_lossy();
            let _ = FAILURE.set(format!(
                "the {STANDARD} beside it has no {name}: the two are of different versions of Parnass; install both from one"
            ));
        } else {
            place.store(found, Ordering::Relaxed);
        }
    }
}

fn open() -> Result<*mut c_void, String> {
    let mut tried = Vec::new();
    for path in places() {
        let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { continue };
        // SAFETY: a string that ends with a zero. RTLD_LOCAL: its MPI_Send must not take the place of ours or of the program's.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if !library.is_null() {
            return Ok(library);
        }
        // SAFETY: dlopen has failed in this thread, so that there is a text.
        tried.push(unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned());
    }
    Err(format!(
        "it needs {STANDARD} of Parnass in its own folder, and cannot open it: {}; install both in one folder \
         (`cargo xtask dist` does)",
        tried.join("; ")
    ))
}

/// Where the standard's library may be: in the folder by whose name this library was found, or where the file really lies.
fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    // SAFETY: all its fields are pointers, which may be null.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    let own = (&raw const TABLE).cast::<c_void>();
    // SAFETY: an address of this library, and a place for the answer.
    if unsafe { libc::dladdr(own, &mut found) } != 0 && !found.dli_fname.is_null() {
        // SAFETY: the loader's string.
        let name = unsafe { CStr::from_ptr(found.dli_fname) };
        let file = Path::new(OsStr::from_bytes(name.to_bytes()));
        let real = std::fs::canonicalize(file).ok();
        for file in [Some(file), real.as_deref()].into_iter().flatten() {
            let place = file.with_file_name(STANDARD);
            if place.is_absolute() && place.exists() && !places.contains(&place) {
                places.push(place);
            }
        }
        if places.is_empty() {
            places.push(file.with_file_name(STANDARD));
        }
    }
    places
}

/// Stands in the table for whatever is not there: says why and ends the program.
unsafe extern "C" fn unavailable() -> ! {
    let reason = FAILURE.get().map_or("its table was not filled", String::as_str);
    let _ = writeln!(std::io::stderr(), "parnass: libmpi.so.12: {reason}");
    std::process::exit(1)
}
