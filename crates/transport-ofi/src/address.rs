//! What each rank tells the others of its endpoint.

use crate::endpoint::ADDRESS;
use crate::wire::VERSION;

/// An endpoint, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The name of its host, for messages.
    pub host: String,
    /// The provider, as libfabric names it.
    pub provider: String,
    /// Its address in the provider's own format, and the number of that format.
    pub format: u32,
    pub address: Vec<u8>,
}

/// Longest name, in bytes.
const NAME_BYTES: usize = 120;

impl Contact {
    /// Cuts what is too long.
    pub fn new(host: &str, provider: &str, format: u32, mut address: Vec<u8>) -> Contact {
        let cut = |name: &str| name.chars().filter(char::is_ascii).take(NAME_BYTES).collect();
        address.truncate(ADDRESS);
        Contact { host: cut(host), provider: cut(provider), format, address }
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        for name in [&self.host, &self.provider] {
            bytes.push(name.len() as u8);
            bytes.extend(name.as_bytes());
        }
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
        let mut names = [String::new(), String::new()];
        for name in &mut names {
            let length = usize::from(take(1)?[0]);
            if length > NAME_BYTES {
                return None;
            }
            *name = String::from_utf8(take(length)?.to_vec()).ok()?;
        }
        let format = u32::from_le_bytes(take(4)?.try_into().ok()?);
        let length = usize::from(u16::from_le_bytes(take(2)?.try_into().ok()?));
        if length == 0 || length > ADDRESS {
            return None;
        }
        let address = take(length)?.to_vec();
        let [host, provider] = names;
        rest.is_empty().then_some(Contact { host, provider, format, address })
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
            let whole = Contact::new("host", "tcp;ofi_rxm", 2, bytes.clone());
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
}
