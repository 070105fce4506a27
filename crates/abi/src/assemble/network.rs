//! Which network is taken between nodes, and what ranks tell each other of theirs.

use super::{Tunables, selection, tunables};
use parnass_transport_ofi::{Listener as Fabric, Reads, Selection, has_hardware, survey};

/// What a user may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Tcp,
    Fabric,
    /// Libfabric where there is hardware for it.
    Auto,
}

fn wish(settings: &Tunables) -> Result<Wish, String> {
    match settings.text(tunables::NETWORK) {
        "tcp" => Ok(Wish::Tcp),
        "ofi" => Ok(Wish::Fabric),
        "auto" | "" => Ok(Wish::Auto),
        other => {
            let row = &tunables::TABLE[tunables::NETWORK];
            Err(format!("{} ({}) is '{other}': it may be tcp, ofi or auto", row.name, row.variable))
        }
    }
}

/// The provider that the user names.
fn provider(settings: &Tunables) -> Option<&str> {
    Some(settings.text(tunables::PROVIDER)).filter(|name| !name.is_empty())
}

/// Whether the user wants libfabric, and nothing else.
pub fn is_asked_for(settings: &Tunables) -> bool {
    provider(settings).is_some() || wish(settings) == Ok(Wish::Fabric)
}

/// An open endpoint of libfabric, where it is to be taken if all ranks have one. A provider that is named is a wish for libfabric, too.
///
/// # Errors
/// A sentence for a person: it was asked for, and is not to be had.
pub fn fabric(settings: &Tunables, host: &str, selection: &Selection) -> Result<Option<Fabric>, String> {
    let provider = provider(settings);
    let reads = Reads::parse(settings.text(tunables::RMA)).map_err(|reason| {
        let row = &tunables::TABLE[tunables::RMA];
        format!("{} ({}) is {reason}", row.name, row.variable)
    })?;
    match wish(settings)? {
        Wish::Tcp => Ok(None),
        Wish::Auto if provider.is_none() => {
            // What cannot be used here is no error where nobody has asked for it.
            let found = has_hardware().then(|| Fabric::new(host, None, selection, reads).ok()).flatten();
            Ok(found.filter(Fabric::is_hardware))
        }
        Wish::Fabric | Wish::Auto => Fabric::new(host, provider, selection, reads).map(Some),
    }
}

/// What is known of the network between nodes, for `parnass info` and `parnass doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Libfabric and its providers, or why there is none.
    pub libfabric: Result<String, String>,
    /// What jobs over several hosts take here, and why; or what is wrong with what is asked for.
    pub taken: Result<String, String>,
}

/// Looks at what this machine has, where `settings` are what is asked for.
pub fn report(settings: &Tunables) -> Report {
    let (wish, selection) = match wish(settings).and_then(|wish| Ok((wish, selection()?))) {
        Ok(looked) => looked,
        Err(error) => return Report { libfabric: Err("not looked for".to_owned()), taken: Err(error) },
    };
    let provider = provider(settings);
    let survey = survey(provider, &selection);
    let libfabric = match &survey {
        Ok(survey) => Ok(format!("{}: {}", survey.library, survey.ways)),
        Err(error) => Err(error.clone()),
    };
    let chosen = survey.and_then(|survey| survey.chosen);
    let forced = wish == Wish::Fabric || provider.is_some();
    let taken = match (wish, chosen) {
        (Wish::Tcp, _) => Ok("TCP, as network=tcp asks".to_owned()),
        (_, Ok((way, _))) if forced => Ok(format!("libfabric's {way}, as network and provider ask")),
        (_, Err(error)) if forced => Err(error),
        (_, Ok((way, true))) if has_hardware() => {
            Ok(format!("libfabric's {way}, which is hardware, if every host of a job has it"))
        }
        _ => Ok("TCP, since there is no hardware here that libfabric makes better use of".to_owned()),
    };
    Report { libfabric, taken }
}

/// What a rank tells all others of where it is.
///
/// ```text
///   cores (4) | length (4) and bytes of the contact for TCP | length (4) and bytes of that for libfabric
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contacts {
    /// Cores that the ranks of its node may use.
    pub cores: u32,
    pub tcp: Vec<u8>,
    /// Empty: it has none.
    pub fabric: Vec<u8>,
}

impl Contacts {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.cores.to_le_bytes().to_vec();
        for contact in [&self.tcp, &self.fabric] {
            bytes.extend((contact.len() as u32).to_le_bytes());
            bytes.extend(contact);
        }
        bytes
    }

    /// From bytes; `None`: it is none.
    pub fn decode(bytes: &[u8]) -> Option<Contacts> {
        let (cores, mut rest) = bytes.split_first_chunk::<4>()?;
        let mut take = || {
            let (length, more) = rest.split_first_chunk::<4>()?;
            let (contact, more) = more.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = more;
            Some(contact.to_vec())
        };
        let (tcp, fabric) = (take()?, take()?);
        rest.is_empty().then_some(Contacts { cores: u32::from_le_bytes(*cores), tcp, fabric })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contacts_survive_and_nothing_else_is_taken_for_one() {
        for (tcp, fabric) in [(vec![1, 2, 3], Vec::new()), (vec![1], vec![9; 300])] {
            let contacts = Contacts { cores: 7, tcp, fabric };
            let bytes = contacts.encode();
            assert_eq!(Contacts::decode(&bytes), Some(contacts));
            for cut in 0..bytes.len() {
                assert_eq!(Contacts::decode(&bytes[..cut]), None, "{cut}");
            }
            assert_eq!(Contacts::decode(&[&bytes[..], &[0]].concat()), None);
        }
    }

    #[test]
    fn a_wish_is_one_of_three() {
        let with = |name: &str| {
            Tunables::from_words([format!("network={name}").as_str()]).and_then(|set| wish(&set))
        };
        assert_eq!(with("ofi"), Ok(Wish::Fabric));
        assert_eq!(with("tcp"), Ok(Wish::Tcp));
        assert_eq!(wish(&Tunables::default()), Ok(Wish::Auto));
        let complaint = with("infiniband").unwrap_err();
        for word in ["PARNASS_NETWORK", "'infiniband'", "tcp, ofi or auto"] {
            assert!(complaint.contains(word), "{word}: {complaint}");
        }
    }
}
