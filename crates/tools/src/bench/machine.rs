//! The machine and the day in words.

use std::time::{SystemTime, UNIX_EPOCH};

/// As "2 cores of AMD EPYC (virtual), 24 GiB of memory, Linux 6.18.44".
pub fn in_words() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    describe(cores, &read("/proc/cpuinfo"), &read("/proc/meminfo"), &read("/proc/sys/kernel/osrelease"))
}

fn describe(cores: usize, cpuinfo: &str, meminfo: &str, release: &str) -> String {
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim())
    };
    let model = field("model name").or_else(|| field("Model")).unwrap_or(std::env::consts::ARCH);
    let is_virtual =
        field("flags").is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let is_virtual = if is_virtual { " (virtual)" } else { "" };
    let kib: u64 = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0);
    let plural = if cores == 1 { "" } else { "s" };
    let number = |character: char| character.is_ascii_digit() || character == '.';
    // What follows the number names the distributor, or the host.
    let release: String = release.chars().take_while(|&character| number(character)).collect();
    let gib = kib.div_ceil(1 << 20);
    format!("{cores} core{plural} of {model}{is_virtual}, {gib} GiB of memory, Linux {release}")
}

/// Today, in universal time, as 2026-03-14.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The date of a day, counted from 1970-01-01.
fn date(day: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, day);
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    format!("{year:04}-{:02}-{:02}", month + 1, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        for (day, expected) in
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (20_453, "2025-12-31"), (20_454, "2026-01-01")]
        {
            assert_eq!(date(day), expected);
        }
    }

    #[test]
    fn the_machine_is_described_without_its_name() {
        let cpuinfo = "processor : 0\nmodel name\t: AMD EPYC\nflags\t: fpu hypervisor avx\n";
        let text = describe(2, cpuinfo, "MemTotal:       24000000 kB\n", "6.18.44-host-7\n");
        assert_eq!(text, "2 cores of AMD EPYC (virtual), 23 GiB of memory, Linux 6.18.44");
    }
}
