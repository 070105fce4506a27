//! Sockets and user memory: bytes go between the two without a stop in between. And the addresses of this machine.

use crate::address::UserAddress;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Parts of one call at most.
pub const PARTS: usize = 16;

/// A run of bytes to be sent.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// Bytes of the caller.
    Bytes(&'a [u8]),
    /// Bytes of the user: address and length.
    User(UserAddress, usize),
}

/// Sends as much of `parts` (the first [`PARTS`] of them) as the socket takes now, without blocking and without a
/// signal.
///
/// # Errors
/// `WouldBlock` when it takes nothing now; else what sendmsg(2) says.
pub fn send(socket: BorrowedFd<'_>, parts: &[Part<'_>]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    if let [Part::Bytes(bytes)] = parts {
        loop {
            // SAFETY: a live slice, which is only read.
            let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
            match done(sent) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                result => return result,
            }
        }
    }
    const NOTHING: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut vectors = [NOTHING; PARTS];
    let count = parts.len().min(PARTS);
    for (vector, part) in vectors.iter_mut().zip(parts) {
        *vector = match part {
            Part::Bytes(bytes) => {
                libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
            }
            Part::User(address, length) => {
                libc::iovec { iov_base: address.as_ptr().cast(), iov_len: *length }
            }
        };
    }
    // SAFETY: all-zero is a message of nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = count as _;
    loop {
        // SAFETY: the vectors name live slices, and user memory that was promised valid when its address was made; both
        // are only read.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, flags) };
        match done(sent) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            result => return result,
        }
    }
}

fn done(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Receives, without blocking: first into `length` bytes of the user at `address`, then into `buffer`. 0: the peer
/// will send nothing more.
///
/// # Errors
/// `WouldBlock` when nothing is there now; else what recvmsg(2) says.
pub fn receive(
    socket: BorrowedFd<'_>,
    address: UserAddress,
    length: usize,
    buffer: &mut [u8],
) -> io::Result<usize> {
    if length == 0 {
        loop {
            let (start, room) = (buffer.as_mut_ptr(), buffer.len());
            // SAFETY: the buffer is exclusive.
            let received = unsafe { libc::recv(socket.as_raw_fd(), start.cast(), room, libc::MSG_DONTWAIT) };
            match done(received) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                result => return result,
            }
        }
    }
    let mut vectors = [
        libc::iovec { iov_base: address.as_ptr().cast(), iov_len: length },
        libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() },
    ];
    // SAFETY: all-zero is a message of nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len() as _;
    loop {
        // SAFETY: the user memory was promised valid and writable when its address was made, the buffer is exclusive.
        let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) };
        match done(received) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            result => return result,
        }
    }
}

/// How long a peer of a TCP connection has acknowledged nothing though something waits for it; zero when nothing does.
///
/// # Errors
/// The socket is of no connection.
pub fn silence(socket: BorrowedFd<'_>) -> io::Result<std::time::Duration> {
    // SAFETY: all-zero is a valid value to be overwritten.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the structure is writable and of the length given.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let waiting = info.tcpi_unacked != 0 || info.tcpi_probes != 0;
    Ok(std::time::Duration::from_millis(if waiting { info.tcpi_last_ack_recv.into() } else { 0 }))
}

/// One address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface, as `ip address` shows it.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// Bits of it that name the network.
    pub prefix: u8,
}

/// The addresses of the interfaces that are up.
///
/// # Errors
/// What getifaddrs(3) says.
pub fn interface_addresses() -> io::Result<Vec<InterfaceAddress>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `first` is writable.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: the list is the kernel's, valid until it is freed below, and null at its end.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        if entry.ifa_flags & libc::IFF_UP as u32 == 0 {
            continue;
        }
        // SAFETY: both are null or addresses of that entry.
        let parts = unsafe { (ip_address(entry.ifa_addr), ip_address(entry.ifa_netmask)) };
        let (Some(address), Some(mask)) = parts else { continue };
        let prefix = match mask {
            IpAddr::V4(mask) => mask.to_bits().count_ones(),
            IpAddr::V6(mask) => mask.to_bits().count_ones(),
        };
        // SAFETY: a terminated name of that entry.
        let interface = unsafe { std::ffi::CStr::from_ptr(entry.ifa_name) };
        let interface = interface.to_string_lossy().into_owned();
        found.push(InterfaceAddress { interface, address, prefix: prefix as u8 });
    }
    // SAFETY: the list that the call above has made, freed once.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// # Safety
/// Null, or an address whose length is that of its family.
unsafe fn ip_address(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: promised by the caller; the family decides about the length.
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let address = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let address = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Scratch;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn parts_arrive_in_user_memory_and_the_rest_behind_it() {
        let (near, far) = UnixStream::pair().unwrap();
        let source = Scratch::new(100);
        source.address().write(&[7; 100]);
        let parts = [Part::Bytes(b"head"), Part::User(source.address(), 100), Part::Bytes(b"tail")];
        assert_eq!(send(near.as_fd(), &parts).unwrap(), 108);
        let target = Scratch::new(90);
        let mut head = [0; 4];
        assert_eq!(receive(far.as_fd(), UserAddress::NULL, 0, &mut head).unwrap(), 4);
        let mut rest = [0; 50];
        assert_eq!(receive(far.as_fd(), target.address(), 90, &mut rest).unwrap(), 104);
        let mut seen = [0; 90];
        target.address().read(&mut seen);
        assert_eq!((&head, seen), (b"head", [7; 90]));
        assert_eq!(&rest[..14], b"\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07tail");
        let error = receive(far.as_fd(), UserAddress::NULL, 0, &mut rest).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(near);
        assert_eq!(receive(far.as_fd(), UserAddress::NULL, 0, &mut rest).unwrap(), 0);
    }

    #[test]
    fn addresses_have_prefixes_of_their_family() {
        for entry in interface_addresses().unwrap() {
            let bits = if entry.address.is_ipv4() { 32 } else { 128 };
            assert!(entry.prefix <= bits && !entry.interface.is_empty(), "{entry:?}");
        }
    }
}
