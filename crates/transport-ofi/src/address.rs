//! What each rank tells the others of its endpoint.

use crate::abi::FORMAT_TEXT;
use crate::endpoint::ADDRESS;
use crate::wire::VERSION;

/// An endpoint, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The name of its host, for messages.
    pub host: String,
    /// The provider, as libfabric names it.
    pub provider: String,
    /// Names what its provider reaches, where that is not every host: only contacts with the same reach each other.
    pub reach: String,
    /// Its address in the provider's own format, and the number of that format.
    pub format: u32,
    pub address: Vec<u8>,
    /// Whether it reads the memory of others, and lets them read its own.
    pub reads: bool,
}

/// Longest name, in bytes.
const NAME_BYTES: usize = 120;

impl Contact {
    /// Cuts what is too long.
    pub fn new(
        host: &str,
        provider: &str,
        reach: &str,
        format: u32,
        mut address: Vec<u8>,
        reads: bool,
    ) -> Contact {
        let cut = |name: &str| name.chars().filter(char::is_ascii).take(NAME_BYTES).collect();
        address.truncate(ADDRESS);
        Contact { host: cut(host), provider: cut(provider), reach: cut(reach), format, address, reads }
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        for name in [&self.host, &self.provider, &self.reach] {
            bytes.push(name.len() as u8);
            bytes.extend(name.as_bytes());
        }
        bytes.push(u8::from(self.reads));
        bytes.extend(self.format.to_le_bytes());
        bytes.extend((self.address.len() as u16).to_le_bytes());
        bytes.extend(&self.address);
        bytes
    }

    /// From bytes; `None`: it is none of this version.
    pub fn decode(bytes: &[u8]) -> Option<Contact> {
        let mut rest = bytes;
        let mut take = |count: usize| -> Option<&[u8]> {
            let (first, more) = rest.split_at_checked(count)?;
            rest = more;
            Some(first)
        };
        if take(1)? != [VERSION] {
            return None;
        }
        let mut names = [String::new(), String::new(), String::new()];
        for name in &mut names {
            let length = usize::from(take(1)?[0]);
            if length > NAME_BYTES {
                return None;
            }
            *name = String::from_utf8(take(length)?.to_vec()).ok()?;
        }
        let reads = match take(1)? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let format = u32::from_le_bytes(take(4)?.try_into().ok()?);
        let length = usize::from(u16::from_le_bytes(take(2)?.try_into().ok()?));
        if length == 0 || length > ADDRESS {
            return None;
        }
        let address = take(length)?.to_vec();
        let [host, provider, reach] = names;
        rest.is_empty().then_some(Contact { host, provider, reach, format, address, reads })
    }

    /// Whether this one can talk to `other`.
    ///
    /// # Errors
    /// A sentence for a person: why not, and what to do.
    pub fn agree(&self, other: &Contact) -> Result<(), String> {
        // A text is as long as it is: shared memory's has the number of a process in it.
        let lengths = self.format == FORMAT_TEXT || self.address.len() == other.address.len();
        if (&self.provider, self.format) != (&other.provider, other.format) || !lengths {
            return Err(format!(
                "host {} uses {} (addresses of format {}), but host {} uses {} (format {}): name one provider for all with \
                 `mpiexec --tunable provider=NAME`, and one network with PARNASS_INTERFACE",
                self.host, self.provider, self.format, other.host, other.provider, other.format
            ));
        }
        if self.reach != other.reach {
            return Err(format!(
                "libfabric's {} reaches only processes of one machine that see the same /dev/shm and each other's process \
                 numbers, and hosts {} and {} are two such: name another provider with `mpiexec --tunable provider=tcp`, or use \
                 TCP: `mpiexec --tunable network=tcp`",
                self.provider, self.host, other.host
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn whatever_comes_is_a_contact_or_refused(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..80),
            cut in 0usize..80,
        ) {
            let _ = Contact::decode(&bytes);
            let whole = Contact::new("host", "tcp;ofi_rxm", "boot here", 2, bytes.clone(), bytes[0] & 2 != 0);
            let encoded = whole.encode();
            proptest::prop_assert_eq!(Contact::decode(&encoded), Some(whole));
            let cut = cut % encoded.len();
            proptest::prop_assert_eq!(Contact::decode(&encoded[..cut]), None);
            let mut other = encoded;
            other[cut] ^= bytes[0] | 1;
            if let Some(contact) = Contact::decode(&other) {
                proptest::prop_assert_eq!(contact.encode(), other);
            }
        }
    }

    #[test]
    fn a_contact_agrees_with_those_that_it_reaches() {
        let contact = |host: &str, provider: &str, reach: &str, format, address: &[u8]| {
            Contact::new(host, provider, reach, format, address.to_vec(), false)
        };
        let own = contact("a", "shm", "boot 1", FORMAT_TEXT, b"fi_shm://999:0:0\0");
        // A process number of one digit more.
        assert_eq!(own.agree(&contact("b", "shm", "boot 1", FORMAT_TEXT, b"fi_shm://1000:0:0\0")), Ok(()));
        let far = own.agree(&contact("c", "shm", "boot 2", FORMAT_TEXT, b"fi_shm://998:0:0\0")).unwrap_err();
        for word in ["libfabric's shm reaches only", "hosts a and c", "provider=tcp", "network=tcp"] {
            assert!(far.contains(word), "{word}: {far}");
        }
        let other = own.agree(&contact("d", "tcp;ofi_rxm", "", 2, &[0; 16])).unwrap_err();
        for word in ["host a uses shm", "host d uses tcp;ofi_rxm", "provider=NAME"] {
            assert!(other.contains(word), "{word}: {other}");
        }
        assert!(contact("a", "tcp", "", 2, &[0; 16]).agree(&contact("b", "tcp", "", 2, &[0; 28])).is_err());
    }
}
