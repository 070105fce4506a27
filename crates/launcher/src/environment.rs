//! The environment variables of a rank.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use parnass_bootstrap::{
    Address, JOB_VARIABLE, LOCAL_RANK_VARIABLE, RANK_VARIABLE, SIZE_VARIABLE, SPAWN_VARIABLE,
};

use crate::arguments::Part;

/// What this job sets for each of its ranks; the same variables of an outer job (a rank that runs mpiexec)
/// end here.
const OWN: [&str; 5] = [JOB_VARIABLE, RANK_VARIABLE, SIZE_VARIABLE, LOCAL_RANK_VARIABLE, SPAWN_VARIABLE];
/// Without these hardly any program runs, so they pass even a list that leaves them out.
const ALWAYS: [&str; 3] = ["PATH", "HOME", "LD_LIBRARY_PATH"];
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Set to anything but `off`, it lets every rank load our library with MPICH's ABI before its program's own libraries: the loader
/// then takes it for every libmpi.so.12 that is asked for, wherever a run path would find another.
pub const MPICH_ABI_VARIABLE: &str = "PARNASS_MPICH_ABI";
const PRELOAD: &str = "LD_PRELOAD";
const MPICH_LIBRARY: &str = "libmpi.so.12";

/// What an agent's ranks have from the agent's own environment, since it belongs to its machine.
const OF_MACHINE: [&str; 8] =
    ["HOME", "HOSTNAME", "LOGNAME", "SHELL", "SSH_AUTH_SOCK", "TMPDIR", "USER", "XDG_RUNTIME_DIR"];

/// The variables that are handed on to the ranks of a part, from the environment of `mpiexec`.
pub fn of_part(part: &Part) -> BTreeMap<OsString, OsString> {
    let handed_on = |name: &OsStr| match &part.environment.only {
        None => true,
        Some(only) => only.iter().any(|wanted| wanted == name) || ALWAYS.iter().any(|always| *always == name),
    };
    let mut variables: BTreeMap<OsString, OsString> =
        std::env::vars_os().filter(|(name, _)| handed_on(name)).collect();
    variables.extend(part.environment.set.iter().cloned());
    for name in OWN {
        variables.remove(OsStr::new(name));
    }
    variables
}

/// `variables` of another machine, as they are right on this one.
pub fn on_this_machine(mut variables: BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
    for name in OF_MACHINE {
        if let Some(value) = variables.get_mut(OsStr::new(name))
            && let Some(own) = std::env::var_os(name)
        {
            *value = own;
        }
    }
    variables
}

/// The variables of a rank on this node, but for its own number.
pub fn of_ranks(
    mut variables: BTreeMap<OsString, OsString>,
    address: &Address,
    size: u32,
) -> BTreeMap<OsString, OsString> {
    variables.insert(JOB_VARIABLE.into(), address.to_string().into());
    variables.insert(SIZE_VARIABLE.into(), size.to_string().into());
    if let Some(directory) = library_directory() {
        let before = variables.remove(OsStr::new(LIBRARY_PATH));
        variables.insert(LIBRARY_PATH.into(), first(&directory, before));
    }
    let wanted = variables.get(OsStr::new(MPICH_ABI_VARIABLE)).is_some_and(|value| value != "off");
    if wanted && let Ok(library) = mpich_library() {
        let before = variables.remove(OsStr::new(PRELOAD));
        variables.insert(PRELOAD.into(), first(&library, before));
    }
    variables
}

/// Our library with MPICH's ABI.
///
/// # Errors
/// It is not installed.
pub fn mpich_library() -> Result<PathBuf, String> {
    let library = library_directory().map(|directory| directory.join(MPICH_LIBRARY));
    match library {
        Some(library) if library.exists() => Ok(library),
        _ => Err(format!(
            "{MPICH_LIBRARY} is not in the lib folder of this installation; install all of it: cargo xtask dist --prefix DIR"
        )),
    }
}

/// `directory`, then what was in the path before, which stays as it is. (The loader takes colons between preloaded libraries too.)
fn first(directory: &Path, before: Option<OsString>) -> OsString {
    let mut path = directory.as_os_str().to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        let mut places = before.as_bytes().split(|&byte| byte == b':');
        if places.next() == Some(path.as_bytes()) {
            return before;
        }
        path.push(":");
        path.push(before);
    }
    path
}

/// `lib` beside the `bin` that holds this program, where our MPI library is in it. A program that was built
/// against another vendor's copy of the standard ABI then runs on this one.
fn library_directory() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let directory = program.parent()?.parent()?.join("lib");
    directory.join("libmpi_abi.so.1").exists().then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parnass_bootstrap::Secret;

    #[test]
    fn our_library_comes_first_and_once() {
        let place = Path::new("/p/lib");
        assert_eq!(first(place, None), "/p/lib");
        assert_eq!(first(place, Some("".into())), "/p/lib");
        assert_eq!(first(place, Some("/a:/b".into())), "/p/lib:/a:/b");
        assert_eq!(first(place, Some("/p/lib:/a".into())), "/p/lib:/a");
    }

    #[test]
    fn own_variables_are_not_the_users_to_set() {
        let mut part = Part::default();
        part.environment.set.push((JOB_VARIABLE.into(), "spoofed".into()));
        part.environment.only = Some(Vec::new());
        let address = Address { name: "job".into(), secret: Secret::random() };
        let variables = of_ranks(of_part(&part), &address, 3);
        assert_eq!(variables[OsStr::new(JOB_VARIABLE)], address.to_string().as_str());
        assert_eq!(variables[OsStr::new(SIZE_VARIABLE)], "3");
        assert!(variables.keys().all(|name| { OWN.iter().chain(&ALWAYS).any(|allowed| *allowed == name) }));
    }
}
