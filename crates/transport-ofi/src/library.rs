//! Libfabric as it is found when a process starts, and what it offers.

use crate::abi::{self, Info};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

const LIBRARY: &CStr = c"libfabric.so.1";

/// The functions that libfabric exports; all others are reached through its objects. It is never unloaded: its providers
/// start threads.
pub struct Library {
    get_info: abi::GetInfo,
    free_info: abi::FreeInfo,
    duplicate_info: abi::DuplicateInfo,
    pub open_fabric: abi::OpenFabric,
    version: abi::Version,
    error_text: abi::ErrorText,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = self.version();
        write!(formatter, "libfabric {major}.{minor}")
    }
}

/// A way that libfabric offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Its provider, as `fi_info` names it: `tcp;ofi_rxm`.
    pub provider: String,
    /// Its fabric and domain, as `fi_info` names them.
    pub fabric: String,
    pub domain: String,
    /// The address of this machine, where it is one of the internet protocol.
    pub address: Option<IpAddr>,
    pub format: u32,
    /// Whether it sends messages of the length that is needed.
    pub is_enough: bool,
    /// Its place in the list.
    place: usize,
}

impl Way {
    /// One for tests of what chooses among them.
    #[cfg(test)]
    pub fn sample(provider: &str, domain: &str, address: Option<IpAddr>) -> Way {
        let (provider, domain) = (provider.to_owned(), domain.to_owned());
        Way { provider, fabric: String::new(), domain, address, format: 0, is_enough: true, place: 0 }
    }

    /// Whether `name` names its provider, or the one below a utility provider.
    pub fn is_of(&self, name: &str) -> bool {
        self.provider == name || self.provider.split(';').any(|part| part == name)
    }
}

/// The list that libfabric has made.
pub struct Ways {
    library: Arc<Library>,
    first: *mut Info,
    pub list: Vec<Way>,
}

// SAFETY: the list is plain memory that this value owns, and that nobody changes.
unsafe impl Send for Ways {}

fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: libfabric's texts are terminated, and live as long as what they are of, which the callers hold.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// The program's handlers of signals, put back when this goes: some providers set their own, which print backtraces.
pub struct Signals(Vec<(c_int, libc::sigaction)>);

impl Signals {
    const THEIRS: [c_int; 8] = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGABRT,
        libc::SIGFPE,
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
    ];

    /// Those that are set now.
    pub fn keep() -> Signals {
        let read = |signal: &c_int| {
            // SAFETY: all-zero is a valid value, to be overwritten.
            let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: nothing is set, and the room is of the right size.
            let result = unsafe { libc::sigaction(*signal, std::ptr::null(), &mut now) };
            (result == 0).then_some((*signal, now))
        };
        Signals(Self::THEIRS.iter().filter_map(read).collect())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: what the kernel has said was set before.
            let _ = unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

impl Library {
    /// Finds it.
    ///
    /// # Errors
    /// There is none, or it is none that is understood; what the linker says.
    pub fn load() -> io::Result<Arc<Library>> {
        let _signals = Signals::keep();
        // SAFETY: a terminated name.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            // SAFETY: the linker's last message, terminated, or null.
            let said = text(unsafe { libc::dlerror() });
            return Err(io::Error::new(io::ErrorKind::NotFound, said));
        }
        let find = |name: &CStr| -> io::Result<*mut c_void> {
            // SAFETY: the library was loaded above and is never unloaded; the name is terminated.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            if found.is_null() {
                Err(io::Error::other(format!("libfabric has no {}", name.to_string_lossy())))
            } else {
                Ok(found)
            }
        };
        // SAFETY: each symbol has, by libfabric's headers, the type that it is given.
        unsafe {
            Ok(Arc::new(Library {
                get_info: std::mem::transmute::<*mut c_void, abi::GetInfo>(find(c"fi_getinfo")?),
                free_info: std::mem::transmute::<*mut c_void, abi::FreeInfo>(find(c"fi_freeinfo")?),
                duplicate_info: std::mem::transmute::<*mut c_void, abi::DuplicateInfo>(find(c"fi_dupinfo")?),
                open_fabric: std::mem::transmute::<*mut c_void, abi::OpenFabric>(find(c"fi_fabric")?),
                version: std::mem::transmute::<*mut c_void, abi::Version>(find(c"fi_version")?),
                error_text: std::mem::transmute::<*mut c_void, abi::ErrorText>(find(c"fi_strerror")?),
            }))
        }
    }

    /// Major and minor.
    pub fn version(&self) -> (u32, u32) {
        // SAFETY: it takes nothing.
        let version = unsafe { (self.version)() };
        (version >> 16, version & 0xffff)
    }

    /// What an error number of libfabric's means.
    pub fn error(&self, number: isize) -> io::Error {
        let number = number.unsigned_abs() as c_int;
        if number < 256 {
            return io::Error::from_raw_os_error(number);
        }
        // SAFETY: it takes any number, and gives a text of its own.
        io::Error::other(text(unsafe { (self.error_text)(number) }))
    }

    /// All ways by which messages go in order and reliably between any two processes. `longest` bytes must fit in a message.
    ///
    /// # Errors
    /// What libfabric says; that there is nothing is no error.
    pub fn ways(self: &Arc<Library>, longest: usize) -> io::Result<Ways> {
        let _signals = Signals::keep();
        // SAFETY: with null it makes an empty one, or gives null when there is no memory.
        let hints = unsafe { (self.duplicate_info)(std::ptr::null()) };
        // SAFETY: an Info that libfabric has made is null or whole, as are its parts.
        let Some(wish) = (unsafe { hints.as_mut() }) else { return Err(io::ErrorKind::OutOfMemory.into()) };
        wish.capabilities = abi::MSG | abi::SEND | abi::RECV;
        wish.mode = abi::CONTEXT | abi::CONTEXT2;
        // SAFETY: as above: whole parts, which nobody else knows.
        unsafe {
            (*wish.transmit).message_order = abi::ORDER_SAS;
            (*wish.receive).message_order = abi::ORDER_SAS;
            (*wish.endpoint).kind = abi::EP_RDM;
            (*wish.domain).threading = abi::THREAD_DOMAIN;
            (*wish.domain).resource_management = abi::RM_ENABLED;
            (*wish.domain).memory_mode =
                abi::MR_LOCAL | abi::MR_VIRT_ADDR | abi::MR_ALLOCATED | abi::MR_PROV_KEY | abi::MR_ENDPOINT;
        }
        let mut first = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: no names, whole hints, and a place for the list.
        let result = unsafe { (self.get_info)(abi::VERSION, none, none, 0, hints, &mut first) };
        // SAFETY: made above, used no more.
        unsafe { (self.free_info)(hints) };
        if result != 0 && -result != libc::ENODATA {
            return Err(self.error(result as isize));
        }
        let mut list = Vec::new();
        let mut next = first;
        // SAFETY: the list is libfabric's, whole, and null at its end.
        while let Some(info) = unsafe { next.as_ref() } {
            // SAFETY: the parts of an entry are whole.
            let (endpoint, domain, fabric) = unsafe { (&*info.endpoint, &*info.domain, &*info.fabric) };
            list.push(Way {
                provider: text(fabric.provider),
                fabric: text(fabric.name),
                domain: text(domain.name),
                address: address(info),
                format: info.address_format,
                is_enough: endpoint.longest_message >= longest,
                place: list.len(),
            });
            next = info.next;
        }
        Ok(Ways { library: self.clone(), first, list })
    }
}

/// The address that an entry is of.
fn address(info: &Info) -> Option<IpAddr> {
    if info.source.is_null() {
        return None;
    }
    match info.address_format {
        abi::FORMAT_IPV4 if info.source_length >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: the format says that this is what is there, and the length was looked at.
            let address = unsafe { info.source.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        abi::FORMAT_IPV6 if info.source_length >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above.
            let address = unsafe { info.source.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

impl Ways {
    /// The entry of a way of this list.
    pub fn info(&self, way: &Way) -> *mut Info {
        let mut next = self.first;
        for _ in 0..way.place {
            // SAFETY: the list is whole, and a way's place is below its length.
            next = unsafe { (*next).next };
        }
        next
    }

    /// Whose list it is.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }
}

impl Drop for Ways {
    fn drop(&mut self) {
        if !self.first.is_null() {
            // SAFETY: the list that libfabric has made, given back once.
            unsafe { (self.library.free_info)(self.first) }
        }
    }
}
