//! Generates the committed files that come from `spec/`, and README's figures from a result file.

mod constants;
mod counters;
mod exports;
mod fortran;
mod header;
mod mpich;
mod performance;
mod spec;
mod stubs;
mod tunables;

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use performance::{file_of, with_later};

/// What is generated: path below the workspace to content.
type Files = BTreeMap<PathBuf, String>;

/// Writes every generated file below `root`; with `check`, writes nothing and fails when one is stale. With `add_stubs`,
/// first adds a stub to `crates/abi/src/calls` for every body that the table names and that is not there.
pub fn run(root: &Path, check: bool, add_stubs: bool) -> Result<()> {
    let spec = spec::Spec::load(root)?;
    if add_stubs {
        stubs::add(root, &spec)?;
    }
    let mut files = Files::new();
    files.insert("crates/mpi/src/constants.rs".into(), constants::rust(&spec));
    files.insert("include/mpi.h".into(), header::c(&spec));
    files.insert("crates/mpi/src/implemented.rs".into(), stubs::implemented(root, &spec)?);
    exports::rust(&spec, &mut files)?;
    fortran::generate(root, &spec, &mut files)?;
    mpich::rust(&spec, &spec.mpich, &mut files)?;
    tunables::generate(root, &mut files)?;
    counters::generate(root, &mut files)?;

    let read = |(_, file): &(_, &'static str)| Some((*file, std::fs::read_to_string(root.join(file)).ok()?));
    let results: Vec<_> = performance::RESULTS.iter().filter_map(read).collect();
    if !results.is_empty() {
        let readme = std::fs::read_to_string(root.join("README.md")).context("README.md")?;
        files.insert("README.md".into(), performance::readme(&readme, &results)?);
    }

    let mut stale = Vec::new();
    let folders = ["crates/abi/src/generated", "crates/abi-mpich/src/generated"];
    for entry in folders.into_iter().flat_map(|folder| std::fs::read_dir(root.join(folder))).flatten() {
        let path = entry?.path();
        let relative = path.strip_prefix(root)?.to_path_buf();
        if !files.contains_key(&relative) {
            stale.push(relative);
            if !check {
                std::fs::remove_file(&path)?;
            }
        }
    }
    for (relative, content) in &files {
        let path = root.join(relative);
        if std::fs::read_to_string(&path).is_ok_and(|present| present == *content) {
            continue;
        }
        stale.push(relative.clone());
        if !check {
            std::fs::create_dir_all(path.parent().context("a file has a directory")?)?;
            std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    for path in &stale {
        println!("{} {}", if check { "stale:" } else { "wrote" }, path.display());
    }
    if check && !stale.is_empty() {
        bail!(
            "{} generated files differ from what they are made from; run `cargo xtask codegen` and commit",
            stale.len()
        );
    }
    Ok(())
}
