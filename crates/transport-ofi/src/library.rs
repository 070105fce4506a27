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
    /// The longest message, in bytes, and whether that is the length that is needed.
    longest: usize,
    pub is_enough: bool,
    /// The longest run of memory that its endpoints can read out of another's, and its place in the list of ways that can.
    reading: Option<(usize, usize)>,
    /// Its place in the list.
    place: usize,
}

impl Way {
    /// One for tests of what chooses among them.
    #[cfg(test)]
    pub fn sample(provider: &str, domain: &str, address: Option<IpAddr>) -> Way {
        let (provider, domain) = (provider.to_owned(), domain.to_owned());
        let (fabric, format, reading) = (String::new(), 0, None);
        Way { provider, fabric, domain, address, format, longest: 0, is_enough: true, reading, place: 0 }
    }

    /// The longest run of memory that its endpoints can read out of another's, in bytes; 0: they cannot.
    pub fn reads(&self) -> usize {
        self.reading.map_or(0, |(longest, _)| longest)
    }

    /// Whether another entry is of the same.
    fn is_like(&self, other: &Way) -> bool {
        let names = |way: &Way| [way.provider.clone(), way.fabric.clone(), way.domain.clone()];
        (names(self), self.address, self.format) == (names(other), other.address, other.format)
    }

    /// Whether `name` names its provider, or the one below a utility provider.
    pub fn is_of(&self, name: &str) -> bool {
        self.provider == name || self.provider.split(';').any(|part| part == name)
    }
}

/// A list that libfabric has made.
struct Infos {
    library: Arc<Library>,
    first: *mut Info,
}

/// The ways that there are.
pub struct Ways {
    all: Infos,
    /// Those whose endpoints can read the memory of others.
    reading: Infos,
    pub list: Vec<Way>,
}

// SAFETY: a list is plain memory that this value owns, and that nobody changes.
unsafe impl Send for Infos {}

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
        const MESSAGES: u64 = abi::MSG | abi::SEND | abi::RECV;
        let reading = self.infos(MESSAGES | abi::RMA | abi::READ | abi::REMOTE_READ)?;
        let all = self.infos(MESSAGES)?;
        let mut able = reading.list(longest);
        let mut list = all.list(longest);
        for way in &mut list {
            // Each of those that look alike has one of its own.
            if let Some(at) = able.iter().position(|other| other.is_like(way)) {
                let other = able.remove(at);
                way.reading = Some((other.longest, other.place));
            }
        }
        Ok(Ways { all, reading, list })
    }

    /// The entries of all that can do this.
    fn infos(self: &Arc<Library>, capabilities: u64) -> io::Result<Infos> {
        let _signals = Signals::keep();
        // SAFETY: with null it makes an empty one, or gives null when there is no memory.
        let hints = unsafe { (self.duplicate_info)(std::ptr::null()) };
        // SAFETY: an Info that libfabric has made is null or whole, as are its parts.
        let Some(wish) = (unsafe { hints.as_mut() }) else { return Err(io::ErrorKind::OutOfMemory.into()) };
        wish.capabilities = capabilities;
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
        Ok(Infos { library: self.clone(), first })
    }
}

impl Infos {
    /// The entries as values.
    fn list(&self, longest: usize) -> Vec<Way> {
        let mut list = Vec::new();
        let mut next = self.first;
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
                longest: endpoint.longest_message,
                is_enough: endpoint.longest_message >= longest,
                reading: None,
                place: list.len(),
            });
            next = info.next;
        }
        list
    }

    fn at(&self, place: usize) -> *mut Info {
        let mut next = self.first;
        for _ in 0..place {
            // SAFETY: the list is whole, and a way's place is below its length.
            next = unsafe { (*next).next };
        }
        next
    }
}

impl Drop for Infos {
    fn drop(&mut self) {
        if !self.first.is_null() {
            // SAFETY: the list that libfabric has made, given back once.
            unsafe { (self.library.free_info)(self.first) }
        }
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
    /// The entry of a way of this list; `reads`: the one whose endpoints can read, if there is such.
    pub fn info(&self, way: &Way, reads: bool) -> *mut Info {
        match way.reading.filter(|_| reads) {
            Some((_, place)) => self.reading.at(place),
            None => self.all.at(way.place),
        }
    }

    /// Whose list it is.
    pub fn library(&self) -> &Arc<Library> {
        &self.all.library
    }
}
