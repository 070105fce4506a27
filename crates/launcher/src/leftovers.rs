//! What a rank that is killed leaves in the file system: libfabric's provider for shared memory keeps a file for each endpoint in
//! `/dev/shm`, named by the number of its process, and only the process itself removes it.

use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, geteuid};

/// Where they are.
const FOLDER: &str = "/dev/shm";

/// Whether ranks with these values of tunables (`NAME=VALUE`) use that provider.
pub fn are_possible(tunables: &[String]) -> bool {
    let providers = tunables.iter().filter_map(|tunable| tunable.strip_prefix("provider="));
    providers.flat_map(|provider| provider.split(';')).any(|part| part == "shm")
}

/// Whether a file of this name is of an endpoint of `process`: `PROCESS:DOMAIN:ENDPOINT`, all numbers.
fn is_of(name: &str, process: i32) -> bool {
    let mut parts = name.split(':');
    let numbers = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next() == Some(process.to_string().as_str()) && parts.clone().count() == 2 && parts.all(numbers)
}

/// Removes what is left of a process of this user that has ended, or is about to.
pub fn remove(process: Pid) {
    for entry in std::fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let named =
            entry.file_name().to_str().is_some_and(|name| is_of(name, process.as_raw_nonzero().get()));
        let own = |file: std::fs::Metadata| file.is_file() && file.uid() == geteuid().as_raw();
        if named && entry.metadata().is_ok_and(own) {
            // It fails where it is gone by now.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_very_process_are_meant() {
        for name in ["17:0:0", "17:12:3"] {
            assert!(is_of(name, 17), "{name}");
        }
        for name in [
            "17", "17:0", "17:0:0:0", "170:0:0", "117:0:0", "17:0:x", "17::0", "17:0:", "a:0:0", "",
            "/17:0:0",
        ] {
            assert!(!is_of(name, 17), "{name}");
        }
    }

    #[test]
    fn only_one_provider_leaves_files() {
        let possible = |tunable: &str| are_possible(&["direct=off".to_owned(), tunable.to_owned()]);
        assert!(possible("provider=shm") && possible("provider=shm;ofi_rxm"));
        for other in ["provider=tcp", "provider=tcp;ofi_rxm", "provider=shmem", "network=ofi", "shm"] {
            assert!(!possible(other), "{other}");
        }
    }
}
