//! The few calls of libpmix that a process needs to find the others of its job, as safe functions. The library is
//! found at run time; the shapes are those of the PMIx standard, version 3 and later.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;

const LIBRARY: &CStr = c"libpmix.so.2";
const NAMESPACE_BYTES: usize = 256;
const KEY_BYTES: usize = 512;
/// The rank that stands for all of a job.
const EVERYBODY: u32 = u32::MAX - 1;
const STRING: u16 = 3;
const INT: u16 = 6;
const UINT16: u16 = 13;
const UINT32: u16 = 14;
const BOOL: u16 = 1;
const BYTES: u16 = 27;
const PROCESS_RANK: u16 = 40;
/// What is put is for every process of the job.
const GLOBAL: u8 = 3;

/// `pmix_proc_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Process {
    namespace: [c_char; NAMESPACE_BYTES],
    rank: u32,
}

/// `pmix_byte_object_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct ByteObject {
    bytes: *mut c_char,
    size: usize,
}

/// The union in `pmix_value_t`, with room for more than its longest member.
#[repr(C)]
union Data {
    flag: u8,
    number: u32,
    bytes: ByteObject,
    _room: [u64; 8],
}

/// `pmix_value_t`.
#[repr(C)]
struct Value {
    kind: u16,
    data: Data,
}

/// `pmix_info_t`.
#[repr(C)]
struct Info {
    key: [c_char; KEY_BYTES],
    flags: u32,
    value: Value,
}

const _: () = assert!(std::mem::offset_of!(Process, rank) == 256 && std::mem::offset_of!(Value, data) == 8);
const _: () = assert!(std::mem::offset_of!(Info, value) == 520);

type Init = unsafe extern "C" fn(*mut Process, *mut Info, usize) -> c_int;
type Finalize = unsafe extern "C" fn(*const Info, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Process, usize, *const Info, usize) -> c_int;
type Get = unsafe extern "C" fn(*const Process, *const c_char, *const Info, usize, *mut *mut Value) -> c_int;
type Abort = unsafe extern "C" fn(c_int, *const c_char, *mut Process, usize) -> c_int;

/// The connection of this process to its PMIx server.
pub struct Pmix {
    own: Process,
    finalize: Finalize,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    abort: Abort,
}

impl std::fmt::Debug for Pmix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pmix").field("rank", &self.own.rank).finish_non_exhaustive()
    }
}

fn failed(call: &str, status: c_int) -> io::Error {
    io::Error::other(format!("{call} failed with status {status}"))
}

fn check(call: &str, status: c_int) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(failed(call, status)) }
}

fn name(text: &str) -> io::Result<CString> {
    let name = CString::new(text).map_err(io::Error::other)?;
    if name.as_bytes_with_nul().len() > KEY_BYTES {
        Err(io::ErrorKind::InvalidInput.into())
    } else {
        Ok(name)
    }
}

impl Pmix {
    /// Loads libpmix and connects to the server that the environment names.
    ///
    /// # Errors
    /// There is no libpmix, or no server.
    pub fn connect() -> io::Result<Pmix> {
        // SAFETY: a terminated name. Its components look for the symbols of the library among the global ones.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if library.is_null() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("{} is not there", LIBRARY.to_string_lossy()),
            ));
        }
        let find = |name: &CStr| -> io::Result<*mut c_void> {
            // SAFETY: the library was loaded above and is never unloaded; the name is terminated.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            if found.is_null() {
                Err(io::Error::other(format!("libpmix has no {}", name.to_string_lossy())))
            } else {
                Ok(found)
            }
        };
        let init = find(c"PMIx_Init")?;
        // SAFETY: the PMIx standard gives this function this type.
        let init = unsafe { std::mem::transmute::<*mut c_void, Init>(init) };
        let mut own = Process { namespace: [0; NAMESPACE_BYTES], rank: 0 };
        // SAFETY: each symbol has, by the PMIx standard, the type that it is given.
        let mut pmix = unsafe {
            Pmix {
                own,
                finalize: std::mem::transmute::<*mut c_void, Finalize>(find(c"PMIx_Finalize")?),
                put: std::mem::transmute::<*mut c_void, Put>(find(c"PMIx_Put")?),
                commit: std::mem::transmute::<*mut c_void, Commit>(find(c"PMIx_Commit")?),
                fence: std::mem::transmute::<*mut c_void, Fence>(find(c"PMIx_Fence")?),
                get: std::mem::transmute::<*mut c_void, Get>(find(c"PMIx_Get")?),
                abort: std::mem::transmute::<*mut c_void, Abort>(find(c"PMIx_Abort")?),
            }
        };
        // SAFETY: a record to be filled, and no further wishes.
        check("PMIx_Init", unsafe { init(&mut own, std::ptr::null_mut(), 0) })?;
        pmix.own = own;
        Ok(pmix)
    }

    /// This process's rank in its job.
    pub fn rank(&self) -> u32 {
        self.own.rank
    }

    fn process(&self, rank: Option<u32>) -> Process {
        Process { rank: rank.unwrap_or(EVERYBODY), ..self.own }
    }

    /// A value of `rank`, or of the whole job, taken by `read` while it is there.
    fn get<T>(&self, rank: Option<u32>, key: &str, read: impl FnOnce(&Value) -> Option<T>) -> io::Result<T> {
        let process = self.process(rank);
        let key = name(key)?;
        let mut value: *mut Value = std::ptr::null_mut();
        // SAFETY: a process and a terminated key to read, and a pointer to be written.
        let status = unsafe { (self.get)(&process, key.as_ptr(), std::ptr::null(), 0, &mut value) };
        check("PMIx_Get", status)?;
        if value.is_null() {
            return Err(failed("PMIx_Get", status));
        }
        // SAFETY: libpmix gave a value of its own making that is now this process's.
        let read = read(unsafe { &*value });
        // SAFETY: as the standard's macros release a value: what it holds if that is bytes or text, then itself.
        unsafe {
            if (*value).kind == BYTES || (*value).kind == STRING {
                libc::free((*value).data.bytes.bytes.cast());
            }
            libc::free(value.cast());
        }
        read.ok_or_else(|| io::Error::other(format!("{} is of another kind", key.to_string_lossy())))
    }

    /// A number that the launcher has put, for `rank` or the whole job.
    pub fn number(&self, rank: Option<u32>, key: &str) -> io::Result<u32> {
        self.get(rank, key, |value| match value.kind {
            // SAFETY: a value of these kinds holds four bytes there.
            INT | UINT32 | PROCESS_RANK => Some(unsafe { value.data.number }),
            // SAFETY: and one of this kind two, the lower half on the machines that exist.
            UINT16 => Some(unsafe { value.data.number } & 0xffff),
            _ => None,
        })
    }

    /// The bytes that `rank` has put under this key before the last fence.
    pub fn bytes(&self, rank: u32, key: &str) -> io::Result<Vec<u8>> {
        self.get(Some(rank), key, |value| {
            if value.kind != BYTES {
                return None;
            }
            // SAFETY: a value of this kind holds a pointer and a length.
            let object = unsafe { value.data.bytes };
            if object.bytes.is_null() {
                return Some(Vec::new());
            }
            // SAFETY: which describe memory that libpmix has allocated and filled.
            Some(unsafe { std::slice::from_raw_parts(object.bytes.cast::<u8>(), object.size) }.to_vec())
        })
    }

    /// Puts bytes under a key.
    pub fn put(&self, key: &str, bytes: &[u8]) -> io::Result<()> {
        let key = name(key)?;
        let mut copy = bytes.to_vec();
        let object = ByteObject { bytes: copy.as_mut_ptr().cast(), size: copy.len() };
        let mut value = Value { kind: BYTES, data: Data { _room: [0; 8] } };
        value.data.bytes = object;
        // SAFETY: a terminated key and a value that stay until the call returns; libpmix copies both.
        check("PMIx_Put", unsafe { (self.put)(GLOBAL, key.as_ptr(), &mut value) })?;
        // SAFETY: takes nothing.
        check("PMIx_Commit", unsafe { (self.commit)() })
    }

    /// Waits for all processes of the job, and brings what they have put.
    pub fn fence(&self) -> io::Result<()> {
        let everybody = self.process(None);
        let mut collect =
            Info { key: [0; KEY_BYTES], flags: 0, value: Value { kind: BOOL, data: Data { _room: [0; 8] } } };
        collect.value.data.flag = 1;
        for (target, byte) in collect.key.iter_mut().zip(b"pmix.collect") {
            *target = *byte as c_char;
        }
        // SAFETY: one process and one wish, which stay until the call returns.
        check("PMIx_Fence", unsafe { (self.fence)(&everybody, 1, &collect, 1) })
    }

    /// Has the launcher end all processes of the job.
    pub fn abort(&self, code: i32, message: &str) {
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        // SAFETY: a terminated text; no list means everybody. Where it fails there is nothing more to do.
        unsafe { (self.abort)(code, message.as_ptr(), std::ptr::null_mut(), 0) };
    }

    /// Says that this process has finished.
    pub fn finalize(&self) -> io::Result<()> {
        // SAFETY: without wishes.
        check("PMIx_Finalize", unsafe { (self.finalize)(std::ptr::null(), 0) })
    }
}
