//! Builds the product and installs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// What is installed in `bin`, by the name of the built file.
const PROGRAMS: [&str; 5] = ["mpiexec", "mpicc", "mpicxx", "mpifort", "parnass"];
/// Other names of those.
const ALIASES: [(&str, &str); 5] = [
    ("mpirun", "mpiexec"),
    ("mpic++", "mpicxx"),
    ("mpiCC", "mpicxx"),
    ("mpif90", "mpifort"),
    ("mpif77", "mpifort"),
];
/// What cargo calls the MPI library, and what programs ask the loader for.
const LIBRARY: (&str, &str) = ("libmpi_abi.so", "libmpi_abi.so.1");
/// The same for the library with MPICH's ABI. There is no `libmpi.so`: a program that is linked here with `-lmpi` would mix the
/// header of one ABI with the library of the other.
const MPICH_LIBRARY: (&str, &str) = ("libmpi_mpich.so", "libmpi.so.12");
/// Other names by which programs in C ask for it: Debian's name for MPICH's library, and the Fortran library that Intel's `mpicc`
/// names for every program.
const MPICH_ALIASES: [&str; 2] = ["libmpich.so.12", "libmpifort.so.12"];

/// For pkg-config, which knows where this file lies.
const PACKAGE: &str = "\
prefix=${pcfiledir}/../..
Name: Parnass
Description: MPI library with the MPI 5.0 standard ABI
Version: VERSION
Cflags: -I${prefix}/include
Libs: -L${prefix}/lib -Wl,-rpath,${prefix}/lib -lmpi_abi
";

/// Builds with `profile` and installs `bin/`, `lib/` and `include/` below `prefix`.
///
/// A running program or library is never written over: each file is placed beside its old one and renamed.
pub fn run(root: &Path, prefix: &Path, profile: &str) -> anyhow::Result<()> {
    let built = build(root, profile)?;
    let (bin, lib, include) = (prefix.join("bin"), prefix.join("lib"), prefix.join("include"));
    for directory in [&bin, &lib, &include] {
        std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    for program in PROGRAMS {
        install(&built.join(program), &bin.join(program))?;
    }
    for (alias, program) in ALIASES {
        link(program, &bin.join(alias))?;
    }
    install(&built.join(LIBRARY.0), &lib.join(LIBRARY.1))?;
    link(LIBRARY.1, &lib.join(LIBRARY.0))?;
    install(&built.join(MPICH_LIBRARY.0), &lib.join(MPICH_LIBRARY.1))?;
    for alias in MPICH_ALIASES {
        link(MPICH_LIBRARY.1, &lib.join(alias))?;
    }
    let fortran = prefix.join("share/parnass/fortran");
    for (from, to) in [("include", &include), ("fortran", &fortran)] {
        std::fs::create_dir_all(to)?;
        for file in std::fs::read_dir(root.join(from))? {
            let file = file?;
            install(&file.path(), &to.join(file.file_name()))?;
        }
    }
    let package = lib.join("pkgconfig");
    std::fs::create_dir_all(&package)?;
    std::fs::write(package.join("parnass.pc"), PACKAGE.replace("VERSION", env!("CARGO_PKG_VERSION")))?;
    println!("installed in {}", prefix.display());
    Ok(())
}

/// Builds what is installed and gives the directory that cargo put it in.
fn build(root: &Path, profile: &str) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(["build", "--profile", profile]);
    command.args([
        "-p",
        "parnass-abi",
        "-p",
        "parnass-abi-mpich",
        "-p",
        "parnass-launcher",
        "-p",
        "parnass-tools",
    ]);
    if !command.status().context("cargo cannot be run")?.success() {
        bail!("the build has failed");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |named| root.join(named));
    Ok(target.join(if profile == "dev" { "debug" } else { profile }))
}

fn install(from: &Path, to: &Path) -> anyhow::Result<()> {
    let beside = to.with_extension("new");
    std::fs::copy(from, &beside)
        .and_then(|_| std::fs::rename(&beside, to))
        .with_context(|| format!("{} cannot be installed as {}", from.display(), to.display()))
}

fn link(target: &str, link: &Path) -> anyhow::Result<()> {
    let beside = link.with_extension("new");
    let _ = std::fs::remove_file(&beside);
    std::os::unix::fs::symlink(target, &beside)
        .and_then(|()| std::fs::rename(&beside, link))
        .with_context(|| format!("the link {} cannot be made", link.display()))
}
