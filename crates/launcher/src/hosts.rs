//! The hosts of a job, as users and batch systems write them, and which rank goes to which.

use std::path::Path;

/// A host that ranks may be started on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    /// How many ranks it takes before the next host is used; none where that was not said.
    pub slots: Option<u32>,
}

/// No list names more hosts.
const HOSTS_MAXIMUM: usize = 65_535;

/// In which order hosts are filled, and ranks numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// One host after the other.
    #[default]
    Slot,
    /// One rank to each host in turn.
    Node,
}

/// How ranks are mapped to hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Map {
    pub by: Order,
    /// So many ranks on each host, whatever its slots are.
    pub per_host: Option<u32>,
    /// How ranks are numbered; as they are mapped when not given.
    pub rank_by: Option<Order>,
}

/// Reads the value of `--host`: hosts between commas, each `NAME` or `NAME:SLOTS`, with ranges as `n[01-16,20]`.
///
/// # Errors
/// What is wrong, and with which word.
pub fn parse_list(text: &str) -> Result<Vec<Host>, String> {
    let mut hosts = Vec::new();
    for word in split(text).into_iter().filter(|word| !word.is_empty()) {
        add(&mut hosts, word, None)?;
    }
    if hosts.is_empty() { Err("no host is named".to_owned()) } else { Ok(hosts) }
}

/// Reads a file of hosts: one to a line, as `NAME`, `NAME:SLOTS`, `NAME SLOTS` or `NAME slots=SLOTS`; what follows `#` is
/// a comment.
///
/// # Errors
/// What is wrong, and in which line.
pub fn parse_file(text: &str) -> Result<Vec<Host>, String> {
    let mut hosts = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let mut slots = None;
        for word in words {
            let number = match word.split_once('=') {
                None => word,
                Some(("slots", number)) => number,
                Some(("max_slots" | "max-slots", _)) => continue,
                Some(_) => {
                    return Err(format!("line {}: '{word}' is not understood; write slots=N", index + 1));
                }
            };
            slots = Some(count(number).map_err(|error| format!("line {}: {error}", index + 1))?);
        }
        add(&mut hosts, name, slots).map_err(|error| format!("line {}: {error}", index + 1))?;
    }
    if hosts.is_empty() { Err("no host is named".to_owned()) } else { Ok(hosts) }
}

/// Reads a file as [`parse_file`].
pub fn read_file(path: &Path) -> Result<Vec<Host>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The nodes of a Slurm allocation: their list, and how many tasks each takes, as `4(x2),1`.
pub fn slurm(nodes: &str, tasks: Option<&str>) -> Result<Vec<Host>, String> {
    let mut hosts = parse_list(nodes)?;
    let Some(tasks) = tasks else { return Ok(hosts) };
    let mut slots = Vec::new();
    for word in tasks.split(',') {
        let (number, times) = match word.split_once("(x") {
            Some((number, times)) => (number, times.trim_end_matches(')')),
            None => (word, "1"),
        };
        let (number, times) = (count(number)?, count(times)? as usize);
        slots.extend(std::iter::repeat_n(number, times.min(HOSTS_MAXIMUM)));
    }
    for (host, slots) in hosts.iter_mut().zip(slots) {
        host.slots = Some(slots);
    }
    Ok(hosts)
}

fn count(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=65_535).contains(number));
    number.ok_or_else(|| format!("'{text}' is not a number of slots, 1 to 65535"))
}

/// Pieces between commas that are in no brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut depth) = (Vec::new(), 0, 0);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b',' if depth == 0 => {
                pieces.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    pieces.push(text[start..].trim());
    pieces
}

fn add(hosts: &mut Vec<Host>, word: &str, slots: Option<u32>) -> Result<(), String> {
    let (name, slots) = match slots_of(word) {
        Some((name, number)) => (name, Some(count(number)?)),
        None => (word, slots),
    };
    for name in expand(name)? {
        if hosts.len() >= HOSTS_MAXIMUM {
            return Err(format!("there are more than {HOSTS_MAXIMUM} hosts"));
        }
        // A host that is named again has so many more slots.
        match hosts.iter_mut().find(|host| host.name == name) {
            Some(host) => host.slots = Some(host.slots.unwrap_or(1).saturating_add(slots.unwrap_or(1))),
            None => hosts.push(Host { name, slots }),
        }
    }
    Ok(())
}

/// The name and the number after the last colon, unless that colon is part of an IPv6 address.
fn slots_of(word: &str) -> Option<(&str, &str)> {
    let (name, number) = word.rsplit_once(':')?;
    let address = !name.ends_with(']') && name.contains(':');
    (!address).then_some((name, number))
}

/// Names from one with ranges in brackets: `n[1-3]` is `n1`, `n2`, `n3`.
fn expand(word: &str) -> Result<Vec<String>, String> {
    if let Some(address) = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
        && address.contains(':')
    {
        return check(address.to_owned()).map(|name| vec![name]);
    }
    let Some((head, rest)) = word.split_once('[') else {
        return check(word.to_owned()).map(|name| vec![name]);
    };
    let wrong = || format!("'{word}': a range is written as in n[01-16,20]");
    let (ranges, tail) = rest.split_once(']').ok_or_else(wrong)?;
    let tails = expand_tail(tail)?;
    let mut names = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let digits =
            |text: &str| !text.is_empty() && text.len() < 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(first) || !digits(last) {
            return Err(wrong());
        }
        let (from, to): (usize, usize) =
            (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
        if to < from || (to - from).saturating_mul(tails.len()) > HOSTS_MAXIMUM {
            return Err(wrong());
        }
        let width = first.len();
        for number in from..=to {
            for tail in &tails {
                names.push(check(format!("{head}{number:0width$}{tail}"))?);
            }
        }
    }
    Ok(names)
}

fn expand_tail(tail: &str) -> Result<Vec<String>, String> {
    if tail.is_empty() { Ok(vec![String::new()]) } else { expand(tail) }
}

/// Names go to other programs as words of their command lines.
fn check(name: String) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:%".contains(&byte);
    if name.is_empty() || name.starts_with('-') || !name.bytes().all(allowed) {
        return Err(format!("'{name}' is not the name of a host"));
    }
    Ok(name)
}

/// Whether `name` is the machine that `here` names.
pub fn is_here(name: &str, here: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let is_address = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') || name.contains(':');
    matches!(name, "localhost" | "127.0.0.1" | "::1")
        || (!is_address && !here.is_empty() && (name == here || name == short(here) || short(name) == here))
}

/// How many ranks the hosts take where the user does not say it: one to each slot.
pub fn slots(hosts: &[Host]) -> u32 {
    hosts.iter().map(|host| host.slots.unwrap_or(1)).fold(0, u32::saturating_add)
}

/// The host of each of `ranks` ranks. When all slots are taken, the next round begins: ranks may outnumber them.
///
/// # Panics
/// If there is no host.
pub fn place(ranks: u32, hosts: &[Host], map: Map) -> Vec<u32> {
    let slots_given = hosts.iter().any(|host| host.slots.is_some());
    let room: Vec<u32> = hosts
        .iter()
        .map(|host| match (map.per_host, host.slots) {
            (Some(ranks), _) => ranks,
            (None, Some(slots)) => slots,
            (None, None) if slots_given => 1,
            // Nothing is said of any host: equal shares.
            (None, None) => ranks.div_ceil(hosts.len() as u32).max(1),
        })
        .collect();
    let mut counts = vec![0u32; hosts.len()];
    let mut left = ranks;
    if !slots_given && map.per_host.is_none() {
        // As equal as can be: the first hosts take one more.
        for (host, count) in counts.iter_mut().enumerate() {
            *count = ranks / hosts.len() as u32 + u32::from((host as u32) < ranks % hosts.len() as u32);
        }
        left = 0;
    }
    let mut rounds = 0;
    while left > 0 {
        rounds += 1;
        match map.by {
            Order::Slot => {
                for (count, room) in counts.iter_mut().zip(&room) {
                    let taken = left.min(*room);
                    *count += taken;
                    left -= taken;
                }
            }
            Order::Node => {
                while left > 0 && counts.iter().zip(&room).any(|(count, room)| *count < room * rounds) {
                    for (count, room) in counts.iter_mut().zip(&room) {
                        if left > 0 && *count < room * rounds {
                            *count += 1;
                            left -= 1;
                        }
                    }
                }
            }
        }
    }
    match map.rank_by.unwrap_or(map.by) {
        Order::Slot => {
            let blocks = counts.iter().enumerate();
            blocks.flat_map(|(host, &count)| std::iter::repeat_n(host as u32, count as usize)).collect()
        }
        Order::Node => {
            let mut placed = Vec::with_capacity(ranks as usize);
            while placed.len() < ranks as usize {
                for (host, count) in counts.iter_mut().enumerate() {
                    if *count > 0 {
                        *count -= 1;
                        placed.push(host as u32);
                    }
                }
            }
            placed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(hosts: Result<Vec<Host>, String>) -> String {
        let hosts = hosts.unwrap();
        let one =
            |host: &Host| host.slots.map_or(host.name.clone(), |slots| format!("{}:{slots}", host.name));
        hosts.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lists_are_read() {
        assert_eq!(shown(parse_list("a,b:3,me@c.example")), "a b:3 me@c.example");
        assert_eq!(shown(parse_list("n[08-10,12]:2,x")), "n08:2 n09:2 n10:2 n12:2 x");
        assert_eq!(shown(parse_list("r[1-2]n[1-2]")), "r1n1 r1n2 r2n1 r2n2");
        assert_eq!(shown(parse_list("[fe80::1%eth0]:4,::1,10.0.0.1:2")), "fe80::1%eth0:4 ::1 10.0.0.1:2");
        assert_eq!(shown(parse_list("a,b,a,a:2")), "a:4 b");
        for text in
            ["", ",", "a:0", "a:x", "n[2-1]", "n[1-", "-oProxyCommand=x", "a b", "n[1-99999999]", "a;b"]
        {
            assert!(parse_list(text).is_err(), "{text}");
        }
    }

    #[test]
    fn files_are_read() {
        let text = "# my hosts\n\na slots=2 max_slots=4\nb:3 # this one too\nn[1-2] 4\nc\n";
        assert_eq!(shown(parse_file(text)), "a:2 b:3 n1:4 n2:4 c");
        assert!(parse_file("a\nb cpus=2").unwrap_err().contains("line 2"));
        assert!(parse_file("# nobody").is_err());
    }

    #[test]
    fn allocations_of_slurm_are_read() {
        assert_eq!(shown(slurm("n[1-3],x", Some("2(x3),1"))), "n1:2 n2:2 n3:2 x:1");
        assert_eq!(shown(slurm("n1", None)), "n1");
    }

    #[test]
    fn this_machine_is_recognised() {
        for name in ["localhost", "127.0.0.1", "::1", "host", "host.example"] {
            assert!(is_here(name, "host.example") || is_here(name, "host"), "{name}");
        }
        assert!(is_here("host", "host.example"));
        assert!(!is_here("host2", "host") && !is_here("10.0.0.1", "10") && !is_here("other.example", "host"));
    }

    fn placed(ranks: u32, hosts: &str, map: Map) -> Vec<u32> {
        place(ranks, &parse_list(hosts).unwrap(), map)
    }

    #[test]
    fn ranks_fill_slots_in_order() {
        let slot = Map::default();
        assert_eq!(placed(4, "a:2,b:2", slot), [0, 0, 1, 1]);
        assert_eq!(placed(3, "a:2,b:2", slot), [0, 0, 1]);
        assert_eq!(placed(6, "a:2,b:1", slot), [0, 0, 0, 0, 1, 1]);
        assert_eq!(placed(5, "a,b", slot), [0, 0, 0, 1, 1]);
        let node = Map { by: Order::Node, ..slot };
        assert_eq!(placed(4, "a:3,b:2", node), [0, 1, 0, 1]);
        assert_eq!(placed(5, "a:3,b:1,c:1", node), [0, 1, 2, 0, 0]);
        let numbered = Map { by: Order::Node, rank_by: Some(Order::Slot), ..slot };
        assert_eq!(placed(4, "a:3,b:2", numbered), [0, 0, 1, 1]);
        let by_one = Map { per_host: Some(1), ..slot };
        assert_eq!(placed(2, "a:8,b:8", by_one), [0, 1]);
        let round = Map { rank_by: Some(Order::Node), ..slot };
        assert_eq!(placed(4, "a:2,b:2", round), [0, 1, 0, 1]);
    }

    proptest! {
        #[test]
        fn every_rank_has_a_host(
            ranks in 1u32..60,
            slots in prop::collection::vec(prop::option::of(1u32..5), 1..6),
            by_node: bool, per_host in prop::option::of(1u32..4), number_by_node: bool,
        ) {
            let hosts: Vec<Host> =
                slots.iter().enumerate().map(|(index, &slots)| Host { name: format!("n{index}"), slots }).collect();
            let order = |node| if node { Order::Node } else { Order::Slot };
            let map = Map { by: order(by_node), per_host, rank_by: Some(order(number_by_node)) };
            let placed = place(ranks, &hosts, map);
            prop_assert_eq!(placed.len(), ranks as usize);
            prop_assert!(placed.iter().all(|&host| (host as usize) < hosts.len()));
            // Nobody takes a second share before everybody has had the first.
            if let Some(per_host) = per_host {
                let count = |host| placed.iter().filter(|&&other| other == host).count() as u32;
                let counts: Vec<u32> = (0..hosts.len() as u32).map(count).collect();
                let most = counts.iter().max().unwrap();
                prop_assert!(counts.iter().all(|count| count + per_host >= *most));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-c0-2\\[\\],:. =#@-]{0,20}") {
            let _ = parse_list(&text);
            let _ = parse_file(&text);
        }
    }
}
