//! What a program can ask about its environment (MPI 5.0, chapter 9, and section 10.1 for MPI_INFO_ENV).

use crate::info::Info;
use std::collections::BTreeSet;
use std::path::Path;

/// Version and subversion of the standard that this library implements.
pub const STANDARD_VERSION: (i32, i32) = (5, 0);

/// Version and subversion of the standard's application binary interface.
pub const ABI_VERSION: (i32, i32) = (1, 0);

/// MPI_Get_library_version.
pub fn library_version() -> String {
    format!(
        "Parnass {} (MPI {}.{}, standard ABI {}.{}; {} {}, {} build)",
        env!("CARGO_PKG_VERSION"),
        STANDARD_VERSION.0,
        STANDARD_VERSION.1,
        ABI_VERSION.0,
        ABI_VERSION.1,
        std::env::consts::OS,
        std::env::consts::ARCH,
        if cfg!(debug_assertions) { "debug" } else { "release" }
    )
}

/// The name of this machine (MPI_Get_processor_name).
pub fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_string(),
        name => name.to_string(),
    }
}

/// What MPI_INFO_ENV and MPI_Info_create_env tell about how the program was started. `arguments` are those of the
/// program, its name first; `processes` is how many the launcher started with it, if there is a launcher.
/// Nobody asks for a level of thread support before a program starts, so that there is no key `thread_level`.
pub fn start_information(arguments: &[Vec<u8>], processes: Option<u32>) -> Info {
    let mut info = Info::new();
    // A value that is too long is left out rather than cut: half a command line would mislead.
    let mut set = |key: &str, value: &[u8]| {
        let _ = info.set(key.as_bytes(), value);
    };
    if let Some((command, rest)) = arguments.split_first() {
        set("command", command);
        set("argv", &rest.join(&b' '));
    }
    if let Some(processes) = processes {
        set("maxprocs", processes.to_string().as_bytes());
        set("soft", processes.to_string().as_bytes());
    }
    set("host", machine_name().as_bytes());
    set("arch", std::env::consts::ARCH.as_bytes());
    if let Ok(directory) = std::env::current_dir() {
        set("wdir", directory.as_os_str().as_encoded_bytes());
    }
    info
}

/// The arguments that this program was started with, its name first.
pub fn program_arguments() -> Vec<Vec<u8>> {
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    line.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// To which instances of each kind of hardware resource a process is confined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// In the order of [`Placement::KINDS`]; `None`: several instances, or unknown.
    instances: [Option<i32>; Placement::KINDS.len()],
}

impl Placement {
    /// The kinds of resources, from the largest to the smallest, by the names of hwloc.
    pub const KINDS: [&'static str; 6] = [
        "hwloc://Machine",
        "hwloc://Package",
        "hwloc://NUMANode",
        "hwloc://L3Cache",
        "hwloc://Core",
        "hwloc://PU",
    ];

    /// Where the calling process may run now, from what the kernel tells.
    pub fn of_this_process() -> Placement {
        let allowed = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            parse_list(line.trim())
        });
        allowed
            .map(|allowed| Placement::of_processors(&allowed, Path::new("/sys/devices/system")))
            .unwrap_or_default()
    }

    fn of_processors(allowed: &BTreeSet<u32>, system: &Path) -> Placement {
        let read = |path: String| std::fs::read_to_string(system.join(path)).ok();
        let number = |path: String| read(path).and_then(|text| text.trim().parse::<i32>().ok());
        let numa_nodes: Vec<(u32, BTreeSet<u32>)> = read("node/online".to_string())
            .and_then(|nodes| parse_list(nodes.trim()))
            .unwrap_or_default()
            .into_iter()
            .filter_map(|node| Some((node, parse_list(read(format!("node/node{node}/cpulist"))?.trim())?)))
            .collect();
        // The instance of a kind that a processor belongs to, named by a number that is the same for all who share it.
        let instance_of = |kind: usize, cpu: u32| -> Option<i32> {
            let first_of = |path: &str| {
                let list = read(format!("cpu/cpu{cpu}/{path}"))?;
                parse_list(list.trim())?.first().map(|&first| first as i32)
            };
            match kind {
                0 => Some(0),
                1 => number(format!("cpu/cpu{cpu}/topology/physical_package_id")),
                2 => numa_nodes.iter().find(|(_, cpus)| cpus.contains(&cpu)).map(|&(node, _)| node as i32),
                3 => first_of("cache/index3/shared_cpu_list"),
                4 => first_of("topology/thread_siblings_list"),
                _ => Some(cpu as i32),
            }
        };
        let mut instances = [None; Placement::KINDS.len()];
        for (kind, place) in instances.iter_mut().enumerate() {
            let mut found = allowed.iter().map(|&cpu| instance_of(kind, cpu));
            let first = found.next().flatten();
            *place = first.filter(|_| found.all(|other| other == first));
        }
        Placement { instances }
    }

    /// The instance of a kind of resource that the process is confined to, if the kind is known and there is one.
    pub fn instance(&self, kind: &[u8]) -> Option<i32> {
        let index = Placement::KINDS.iter().position(|known| known.as_bytes() == kind)?;
        self.instances[index]
    }

    /// MPI_Get_hw_resource_info: for each kind whether the process is confined to one instance of it.
    pub fn resource_info(&self) -> Info {
        let mut info = Info::new();
        let shared = ("mpi_shared_memory", true);
        let kinds =
            Placement::KINDS.iter().zip(&self.instances).map(|(&kind, instance)| (kind, instance.is_some()));
        for (kind, confined) in std::iter::once(shared).chain(kinds) {
            let value: &[u8] = if confined { b"true" } else { b"false" };
            info.set(kind.as_bytes(), value).expect("short keys and values");
        }
        info
    }
}

/// A list of numbers as the kernel writes it, such as `0-3,8`. `None` if it is something else.
fn parse_list(text: &str) -> Option<BTreeSet<u32>> {
    let mut numbers = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last.checked_sub(first)? > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(parse_list("0-2,7"), Some([0, 1, 2, 7].into()));
        assert_eq!(parse_list(""), Some(BTreeSet::new()));
        assert_eq!(parse_list("3-1"), None);
        assert_eq!(parse_list("x"), None);
    }

    #[test]
    fn a_process_is_confined_by_its_mask() {
        let system = std::env::temp_dir().join(format!("parnass-placement-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = system.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("node/online", "0-1\n");
        write("node/node0/cpulist", "0-1\n");
        write("node/node1/cpulist", "2-3\n");
        for cpu in 0..4 {
            write(&format!("cpu/cpu{cpu}/topology/physical_package_id"), "0\n");
            write(
                &format!("cpu/cpu{cpu}/topology/thread_siblings_list"),
                &format!("{}-{}\n", cpu / 2 * 2, cpu / 2 * 2 + 1),
            );
        }
        let placement = Placement::of_processors(&[2, 3].into(), &system);
        assert_eq!(placement.instances, [Some(0), Some(0), Some(1), None, Some(2), None]);
        let placement = Placement::of_processors(&[1, 2].into(), &system);
        assert_eq!(placement.instances, [Some(0), Some(0), None, None, None, None]);
        assert_eq!(placement.resource_info().value(b"hwloc://NUMANode"), Some(&b"false"[..]));
        std::fs::remove_dir_all(system).unwrap();
    }

    #[test]
    fn the_program_knows_how_it_was_started() {
        let info = start_information(&[b"prog".to_vec(), b"-x".to_vec(), b"1".to_vec()], Some(4));
        assert_eq!(info.value(b"command"), Some(&b"prog"[..]));
        assert_eq!(info.value(b"argv"), Some(&b"-x 1"[..]));
        assert_eq!(info.value(b"maxprocs"), Some(&b"4"[..]));
        assert!(info.value(b"wdir").is_some());
        assert!(!program_arguments().is_empty());
    }
}
