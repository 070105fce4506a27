//! Programs of package registries, unmodified: fetched, built with our wrappers and run. The table is
//! `tests/clients/packages.toml`; tests/README.md explains its fields.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use regex::Regex;
use serde::Deserialize;

use super::runner::{self, Outcome};
use super::table::Places;
use super::tally::{Tally, Verdict, excerpt};
use crate::python::quiet;

/// Part of apt; it fetches a file and compares its hash.
const APT_HELPER: &str = "/usr/lib/apt/apt-helper";

/// The file, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    client: Vec<Client>,
}

/// A program: where it comes from, how it is built and what is run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    name: String,
    /// Files of Debian's archive: a source that is unpacked, or packages.
    #[serde(default)]
    debian: Vec<Archived>,
    /// Or a crate, as `name@version`.
    #[serde(default)]
    rust: String,
    /// What must be there; the client is skipped where it is not.
    #[serde(default)]
    needs: Vec<Need>,
    /// A script for the shell, in the folder of the sources.
    build: String,
    #[serde(default = "default_build_limit_s")]
    build_limit_s: u64,
    /// Only with `--full`.
    #[serde(default)]
    full: bool,
    run: Vec<Run>,
}

/// A file of Debian's archive, by its path below `pool/`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Archived {
    file: String,
    sha256: String,
}

/// Something that Debian's packages or others must have installed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Need {
    what: String,
    /// A script that succeeds where it is there.
    probe: String,
}

/// A command on one or more numbers of ranks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    /// With `{}` for what stands in `each`.
    name: String,
    /// One test for each; `.rs` files of a folder by their stems when it is a folder's name.
    #[serde(default)]
    each: Each,
    ranks: Vec<u32>,
    /// A script for the shell; `$N` is the number of ranks, `{}` what stands in `each`.
    command: String,
    #[serde(default = "default_limit_s")]
    limit_s: u64,
    /// Regular expressions that the output must match, or with a leading `!` must not.
    #[serde(default)]
    stdout: Vec<String>,
    #[serde(default)]
    full: bool,
}

/// What a run is repeated for.
#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Each {
    #[default]
    Once,
    Words(Vec<String>),
    /// The files of a folder, by their stems.
    Files(String),
}

fn default_limit_s() -> u64 {
    60
}

fn default_build_limit_s() -> u64 {
    300
}

fn read(root: &Path) -> anyhow::Result<Vec<Client>> {
    let path = root.join("tests/clients/packages.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let file: File = toml::from_str(&text).context("tests/clients/packages.toml")?;
    for client in &file.client {
        if client.debian.is_empty() == client.rust.is_empty() {
            bail!(
                "tests/clients/packages.toml: {} needs `debian` or `rust`, and one of them only",
                client.name
            );
        }
        for pattern in client.run.iter().flat_map(|run| &run.stdout) {
            Regex::new(pattern.trim_start_matches('!'))
                .with_context(|| format!("tests/clients/packages.toml: {}", client.name))?;
        }
    }
    Ok(file.client)
}

/// The names by which `--only` chooses them.
pub fn names(root: &Path) -> anyhow::Result<Vec<String>> {
    Ok(read(root)?.into_iter().map(|client| client.name).collect())
}

/// Runs the clients whose names pass `wanted`.
pub fn run(places: &Places, wanted: &dyn Fn(&str) -> bool, tally: &mut Tally) -> anyhow::Result<()> {
    for client in read(&places.root)? {
        if !wanted(&client.name) {
            continue;
        }
        if client.full && !places.full {
            let verdict = Verdict::Skipped("runs with --full".to_owned());
            tally.add("clients", &client.name, Duration::ZERO, verdict);
            continue;
        }
        match client.prepare(places, tally)? {
            Some(folder) => client.runs(places, &folder, tally)?,
            None => continue,
        }
    }
    Ok(())
}

impl Client {
    /// Fetches and builds it, and gives the folder of its sources; counts a failure or a reason to skip it.
    fn prepare(&self, places: &Places, tally: &mut Tally) -> anyhow::Result<Option<PathBuf>> {
        let name = format!("{}/build", self.name);
        for need in &self.needs {
            let probed = runner::run(shell(&need.probe), b"", Duration::from_secs(30), &places.scratch)?;
            if probed.code() != 0 {
                let verdict = Verdict::Skipped(format!("{} is not installed", need.what));
                tally.add("clients", &name, Duration::ZERO, verdict);
                return Ok(None);
            }
        }
        let folder = match self.fetch(&places.scratch.join("packages")) {
            Ok(folder) => folder,
            // No network, or a registry without the file: nothing of ours has failed.
            Err(error) => {
                let verdict = Verdict::Skipped(format!("could not be fetched: {error:#}"));
                tally.add("clients", &name, Duration::ZERO, verdict);
                return Ok(None);
            }
        };
        let mut command = self.shell(places, &self.build, &folder);
        command.env("N", "1");
        let outcome = runner::run(command, b"", Duration::from_secs(self.build_limit_s), &places.scratch)?;
        let mut complaints = self.complaints(&outcome, self.build_limit_s);
        complaints.retain(|complaint| !complaint.starts_with("left behind: temporary"));
        let built = complaints.is_empty();
        tally.add("clients", &name, outcome.elapsed, verdict(complaints, &outcome));
        Ok(built.then_some(folder))
    }

    /// The folder with its sources, freshly unpacked.
    fn fetch(&self, packages: &Path) -> anyhow::Result<PathBuf> {
        let folder = packages.join(&self.name);
        std::fs::create_dir_all(packages)?;
        if self.rust.is_empty() {
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder)?;
            for archived in &self.debian {
                let file = archived.fetch(packages)?;
                let mut command = if archived.file.ends_with(".deb") {
                    Command::new("dpkg-deb")
                } else {
                    Command::new("tar")
                };
                if archived.file.ends_with(".deb") {
                    command.arg("-x").arg(&file).arg(&folder);
                } else {
                    command.arg("xf").arg(&file).args(["--strip-components=1", "-C"]).arg(&folder);
                }
                quiet(&mut command)?;
            }
        } else {
            let sources = self.fetch_crate(&packages.join(format!("{}-crate", self.name)))?;
            // What has been built is kept from run to run.
            std::fs::create_dir_all(&folder)?;
            let mut command = Command::new("cp");
            command.arg("-r").arg("--preserve=timestamps").arg(sources.join(".")).arg(&folder);
            quiet(&mut command)?;
        }
        Ok(folder)
    }

    /// Lets cargo fetch the crate, as a dependency of an empty package in `folder`, and says where it is.
    fn fetch_crate(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let (name, version) = self.rust.split_once('@').context("`rust` is name@version")?;
        std::fs::create_dir_all(folder.join("src"))?;
        std::fs::write(folder.join("src/lib.rs"), "")?;
        let manifest = format!(
            "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{name} = \"={version}\"\n\n[workspace]\n"
        );
        std::fs::write(folder.join("Cargo.toml"), manifest)?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output =
            Command::new(cargo).args(["metadata", "--format-version", "1"]).current_dir(folder).output()?;
        if !output.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
        let found = packages.iter().find(|package| package["name"] == name && package["version"] == version);
        let manifest = found.and_then(|package| package["manifest_path"].as_str());
        let manifest = manifest.with_context(|| format!("cargo metadata does not name {}", self.rust))?;
        Ok(Path::new(manifest).parent().context("the crate's folder")?.to_path_buf())
    }

    /// A script with our wrappers and mpiexec first in its path, and a target directory of its own for cargo.
    fn shell(&self, places: &Places, script: &str, folder: &Path) -> Command {
        let mut command = shell(script);
        command.current_dir(folder);
        command.env("PATH", super::clients::path_with(&places.prefix.join("bin")));
        command.env("PREFIX", &places.prefix).env("CLIENTS", places.root.join("tests/clients"));
        command
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .env_remove("RUSTFLAGS")
            .env_remove("MAKEFLAGS");
        // The workspace's toolchain file does not lie above every scratch folder.
        command.env("CARGO_INCREMENTAL", "0");
        command
    }

    fn runs(&self, places: &Places, folder: &Path, tally: &mut Tally) -> anyhow::Result<()> {
        for run in &self.run {
            for word in run.words(folder)? {
                for ranks in &run.ranks {
                    let name = format!("{}/{}/{ranks}", self.name, run.name.replace("{}", &word));
                    if run.full && !places.full {
                        let verdict = Verdict::Skipped("runs with --full".to_owned());
                        tally.add("clients", &name, Duration::ZERO, verdict);
                        continue;
                    }
                    let mut command = self.shell(places, &run.command.replace("{}", &word), folder);
                    command.env("N", ranks.to_string());
                    let limit = Duration::from_secs(run.limit_s);
                    let outcome = runner::run(command, b"", limit, &places.scratch)?;
                    let mut complaints = self.complaints(&outcome, run.limit_s);
                    complaints.extend(run.unmatched(&outcome.stdout));
                    tally.add("clients", &name, outcome.elapsed, verdict(complaints, &outcome));
                }
            }
        }
        Ok(())
    }

    fn complaints(&self, outcome: &Outcome, limit_s: u64) -> Vec<String> {
        let mut complaints = Vec::new();
        if outcome.timed_out {
            complaints.push(format!("did not end within {limit_s} s"));
        } else if outcome.code() != 0 {
            complaints.push(format!("exit status {}", outcome.code()));
        }
        complaints.extend(outcome.leftovers.iter().map(|leftover| format!("left behind: {leftover}")));
        complaints
    }
}

impl Archived {
    /// The file in `packages`, fetched from where this machine gets its packages unless it is there already.
    fn fetch(&self, packages: &Path) -> anyhow::Result<PathBuf> {
        let file = packages.join(self.file.rsplit('/').next().unwrap_or_default());
        if file.exists() {
            return Ok(file);
        }
        let mut command = Command::new("apt-get");
        command.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"]);
        let listed = command.output().context("apt-get")?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let archive = listed.lines().find(|line| !line.is_empty());
        let archive =
            archive.context("apt-get knows no archive of Debian's (is `apt-get update` needed?)")?;
        let beside = file.with_extension("part");
        let mut command = Command::new(APT_HELPER);
        command.arg("download-file").arg(format!("{archive}pool/{}", self.file)).arg(&beside);
        quiet(command.arg(format!("SHA256:{}", self.sha256)))?;
        std::fs::rename(beside, &file)?;
        Ok(file)
    }
}

impl Run {
    fn words(&self, folder: &Path) -> anyhow::Result<Vec<String>> {
        match &self.each {
            Each::Once => Ok(vec![String::new()]),
            Each::Words(words) => Ok(words.clone()),
            Each::Files(files) => {
                let files = folder.join(files);
                let entries = std::fs::read_dir(&files).with_context(|| files.display().to_string())?;
                let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                let mut words: Vec<String> =
                    entries.flatten().filter_map(|entry| stem(entry.path())).collect();
                words.sort();
                if words.is_empty() {
                    bail!("{} is empty", files.display());
                }
                Ok(words)
            }
        }
    }

    /// What the output should or should not match, and does not or does.
    fn unmatched(&self, text: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        for pattern in &self.stdout {
            let (wanted, pattern) = match pattern.strip_prefix('!') {
                Some(pattern) => (false, pattern),
                None => (true, pattern.as_str()),
            };
            if Regex::new(pattern).is_ok_and(|regex| regex.is_match(text)) != wanted {
                let manner = if wanted { "does not match" } else { "matches" };
                complaints.push(format!("standard output {manner} /{pattern}/"));
            }
        }
        complaints
    }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-euc", script]);
    command
}

fn verdict(complaints: Vec<String>, outcome: &Outcome) -> Verdict {
    if complaints.is_empty() {
        return Verdict::Passed;
    }
    Verdict::Failed(format!(
        "{}\n{}{}",
        complaints.join("\n"),
        excerpt("stdout", &outcome.stdout),
        excerpt("stderr", &outcome.stderr),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let clients = read(root).unwrap();
        assert!(!clients.is_empty());
        for client in clients {
            assert!(client.run.iter().all(|run| !run.ranks.is_empty()), "{} runs on no ranks", client.name);
        }
    }

    #[test]
    fn output_must_match_what_is_wanted_and_not_what_is_not() {
        let run: Run = toml::from_str(
            "name = 'x'\nranks = [1]\ncommand = 'true'\nstdout = ['all [0-9]+ passed', '!FAILED']\n",
        )
        .unwrap();
        assert!(run.unmatched("all 12 passed").is_empty());
        assert_eq!(run.unmatched("all 12 passed, 1 FAILED").len(), 1);
        assert_eq!(run.unmatched("").len(), 1);
    }
}
