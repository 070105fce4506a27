//! Which processors a job may use, and which of them each rank.
//!
//! By default each rank is bound to its share of the cores: on a busy machine the kernel often leaves two ranks
//! on one core for seconds, and each message between them then takes a turn of all processes there. A share leaves
//! room for the threads of a rank. Ranks that outnumber the cores, and of which each core gets as many, are dealt out
//! to the cores one after the other: where the kernel moves them about, their messages cross from core to core, and now and then one core has most of
//! those that have something to do. A single rank, and any other number, run where they like.
//!
//! Two jobs are never bound to one core: a core is held by a socket with an abstract name, so that the claim ends
//! with its holder. A job that finds cores held runs where it likes.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use parnass_base::process::allowed_processors;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

use crate::arguments::Bind;

/// Where the ranks of a job run.
#[derive(Debug, Default)]
pub struct Places {
    /// The processors of each rank; empty when ranks are not bound.
    pub of_rank: Vec<Vec<usize>>,
    /// Why ranks are not bound though it was asked for.
    pub note: Option<String>,
    _claims: Vec<OwnedFd>,
}

/// Chooses places for `ranks` ranks.
pub fn choose(how: Bind, ranks: usize) -> Places {
    let units = match how {
        Bind::None => return Places::default(),
        Bind::Share => return share(ranks),
        Bind::Core => cores(&allowed_processors()),
        Bind::Thread => allowed_processors().into_iter().map(|processor| vec![processor]).collect(),
    };
    let usable = units.len().min(parnass_bootstrap::available_processors());
    let unbound =
        |reason: String| Places { note: Some(format!("ranks are not bound: {reason}")), ..Places::default() };
    let noun = if how == Bind::Core { "core" } else { "hardware thread" };
    if ranks > usable {
        let counted = crate::report::counted;
        return unbound(format!("{} on {}", counted(ranks, "rank"), counted(usable, noun)));
    }
    let mut places = Places::default();
    for unit in units {
        if places.of_rank.len() < ranks
            && let Some(mut claims) = claim(&unit)
        {
            places._claims.append(&mut claims);
            places.of_rank.push(unit);
        }
    }
    if places.of_rank.len() < ranks {
        return unbound(format!("other bound jobs hold too many of the {usable} {noun}s"));
    }
    places
}

/// Gives each rank the same number of cores, if they all are free.
fn share(ranks: usize) -> Places {
    let cores = cores(&allowed_processors());
    let usable = cores.len().min(parnass_bootstrap::available_processors());
    let shares = shares(ranks, &cores, usable);
    let Some(claims) = claim(&shares.concat()) else { return Places::default() };
    let ranks = if shares.is_empty() { 0 } else { ranks };
    let of_rank = (0..ranks).map(|rank| shares[share_of(rank, shares.len())].clone()).collect();
    Places { of_rank, note: None, _claims: claims }
}

/// The share of a rank, of so many: the sum of its digits in that base. So ranks that differ in one digit are apart, neighbours and the
/// halves of the job among them, and so many ranks in a row have one each.
fn share_of(rank: usize, shares: usize) -> usize {
    let (mut rest, mut sum) = (rank, 0);
    while shares > 1 && rest != 0 {
        sum += rest % shares;
        rest /= shares;
    }
    sum % shares
}

/// The processors of the ranks, which are the same again for ranks that outnumber the cores; none where ranks run where they like. Of the cores, so many
/// are `usable`: a control group may grant fewer than it shows.
fn shares(ranks: usize, cores: &[Vec<usize>], usable: usize) -> Vec<Vec<usize>> {
    if ranks < 2 {
        return Vec::new();
    }
    if ranks > usable {
        let even = usable == cores.len() && ranks.is_multiple_of(usable);
        return if even { cores.to_vec() } else { Vec::new() };
    }
    cores.chunks(cores.len() / ranks).take(ranks).map(<[Vec<usize>]>::concat).collect()
}

/// The allowed hardware threads, by core.
fn cores(processors: &[usize]) -> Vec<Vec<usize>> {
    let mut cores: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &processor in processors {
        let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
        let siblings = std::fs::read_to_string(path).unwrap_or_default();
        let first = siblings.split([',', '-', '\n']).next().and_then(|first| first.parse().ok());
        cores.entry(first.unwrap_or(processor)).or_default().push(processor);
    }
    cores.into_values().collect()
}

fn claim(processors: &[usize]) -> Option<Vec<OwnedFd>> {
    let one = |processor: &usize| -> rustix::io::Result<OwnedFd> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let name = format!("parnass-processor-{processor}");
        bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok(socket)
    };
    processors.iter().map(one).collect::<rustix::io::Result<_>>().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allowed_processor_is_in_one_core() {
        let allowed = allowed_processors();
        let mut seen: Vec<usize> = cores(&allowed).concat();
        seen.sort_unstable();
        assert_eq!(seen, allowed);
    }

    #[test]
    fn more_ranks_than_cores_are_not_bound() {
        let places = choose(Bind::Core, 100_000);
        assert!(places.of_rank.is_empty() && places.note.unwrap().contains("100000 ranks on"));
    }

    #[test]
    fn shares_are_equal_and_apart_or_there_are_none() {
        assert!(share(1).of_rank.is_empty());
        let places = share(2).of_rank; // Other jobs may hold cores now, or there is only one.
        if let [one, other] = places.as_slice() {
            assert_eq!(one.len(), other.len());
            assert!(one.iter().all(|processor| !other.contains(processor)));
        } else {
            assert!(places.is_empty());
        }
    }

    #[test]
    fn ranks_that_outnumber_the_cores_are_dealt_out_if_each_core_gets_as_many() {
        let cores = [vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]];
        assert_eq!(shares(4, &cores, 4), cores);
        assert_eq!(shares(2, &cores, 4), [vec![0, 4, 1, 5], vec![2, 6, 3, 7]]);
        assert_eq!(shares(3, &cores, 4), cores[..3]);
        assert_eq!(shares(8, &cores, 4), cores);
        assert!(shares(6, &cores, 4).is_empty());
        assert!(shares(8, &cores, 2).is_empty());
        assert!(shares(1, &cores, 4).is_empty());
        let dealt = share(2 * super::cores(&allowed_processors()).len()).of_rank;
        if let Some(first) = dealt.first() {
            assert!(dealt.iter().filter(|place| *place == first).count() == 2);
        }
    }

    #[test]
    fn ranks_that_differ_in_one_digit_are_apart() {
        let dealt = |ranks: usize, shares| (0..ranks).map(|rank| share_of(rank, shares)).collect::<Vec<_>>();
        assert_eq!(dealt(8, 2), [0, 1, 1, 0, 1, 0, 0, 1]);
        assert_eq!(dealt(8, 4), [0, 1, 2, 3, 1, 2, 3, 0]);
        assert_eq!(dealt(4, 4), [0, 1, 2, 3]);
        assert_eq!(dealt(3, 1), [0, 0, 0]);
        let (of_rank, halves) = (dealt(64, 2), 32);
        assert!((0..halves).all(|rank| of_rank[rank] != of_rank[rank + halves]));
        assert_eq!(of_rank.iter().sum::<usize>(), halves);
    }

    #[test]
    fn a_core_has_one_holder() {
        let held = claim(&[100_001]).unwrap();
        assert!(claim(&[100_001]).is_none());
        drop(held);
        assert!(claim(&[100_001]).is_some());
    }
}
