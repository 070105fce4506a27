//! `parnass info`: what this installation is, what it would do here, and what it cannot do.

use std::fmt::Write as _;

use mpi_abi::assemble::network::{Report, report};
use parnass_collectives::{ALGORITHMS, RULES};
use parnass_mpi::implemented::{MISSING, PROCEDURES};
use parnass_mpi::pt2pt::protocol::Table;
use parnass_tunables::files::{self, Decision};
use parnass_tunables::{self as tunables, COLLECTIVE, TABLE};
use serde_json::{Value, json};

use crate::prefix::Prefix;
use crate::probe;

/// Everything that `parnass info` tells.
#[derive(Debug)]
pub struct Facts {
    prefix: Option<Prefix>,
    /// Which Fortran bindings there are.
    fortran: Option<String>,
    pub(crate) processors: Processors,
    /// Whether the kernel lets ranks reach each other's memory.
    pub(crate) direct: Result<(), String>,
    pub(crate) protocols: Table,
    pub(crate) decision: Decision,
    /// What carries messages between hosts.
    network: Report,
}

#[derive(Debug)]
pub(crate) struct Processors {
    online: usize,
    allowed: usize,
    pub(crate) usable: usize,
}

impl Facts {
    /// Looks at this machine.
    ///
    /// # Errors
    /// A tunable that is chosen by a file or by the environment is wrong.
    pub fn gather() -> Result<Facts, String> {
        let direct = probe::direct_copy();
        let decision = files::decide([], &files::environment())?;
        let allowed = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
        let prefix = Prefix::of_this_program().ok();
        Ok(Facts {
            fortran: prefix.as_ref().map(crate::fortran::support),
            prefix,
            processors: Processors {
                online: files::online_processors().map_or(allowed, |online| online as usize),
                allowed,
                usable: parnass_bootstrap::available_processors(),
            },
            direct,
            protocols: Table::new(decision.settings.number(tunables::DIRECT_THRESHOLD)),
            network: report(&decision.settings),
            decision,
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let out = &mut text;
        let _ = writeln!(out, "Parnass {}", env!("CARGO_PKG_VERSION"));
        row(out, "standard", "MPI 5.0, standard ABI 1.0 (libmpi_abi.so.1)");
        row(out, "build", &build());
        if let Some(prefix) = &self.prefix {
            row(out, "prefix", &prefix.directory().display().to_string());
            let library = prefix.library_file();
            let missing = if library.exists() { "" } else { "  (not there)" };
            row(out, "library", &format!("{}{missing}", library.display()));
            let mpich = prefix.mpich_library_file();
            let missing = if mpich.exists() { "" } else { "  (not there)" };
            row(out, "MPICH's ABI", &format!("{}{missing}", mpich.display()));
        }
        if let Some(fortran) = &self.fortran {
            row(out, "Fortran", fortran);
        }
        let done = PROCEDURES - MISSING.len();
        let rest = if MISSING.is_empty() { "" } else { "; the others: parnass info --missing" };
        row(out, "procedures", &format!("{done} of {PROCEDURES}{rest}"));
        row(out, "fault tolerance", "ULFM (mpi-ext.h); ranks may die with mpiexec --survive");

        let _ = writeln!(out, "\nthis machine");
        let Processors { online, allowed, usable } = self.processors;
        row(out, "processors", &format!("{usable} for jobs ({online} online, {allowed} by affinity mask)"));
        row(
            out,
            "oversubscribed",
            &format!("from {} ranks on; waiting ranks then sleep at once", usable + 1),
        );
        row(
            out,
            "binding",
            "each rank to its share of the cores, if there is one for each and no other job holds it",
        );
        row(out, "on one host", "shared memory");
        let (Ok(taken) | Err(taken)) = &self.network.taken;
        row(out, "between hosts", taken);
        match &self.network.libfabric {
            Ok(found) => row(out, "libfabric", found),
            Err(reason) => row(out, "libfabric", &format!("none: {reason}")),
        }
        match &self.direct {
            Ok(()) => row(out, "direct copy", "allowed (process_vm_readv)"),
            Err(reason) => {
                row(out, "direct copy", &format!("not allowed: {reason}; long messages go in pieces"))
            }
        }
        row(out, "measured values", &self.decision.tuned.to_string());
        if let Some(config) = &self.decision.config {
            row(out, "configuration", &config.display().to_string());
        }
        let changed = self.decision.settings.words();
        if !changed.is_empty() {
            row(out, "tunables", &changed.join(" "));
        }

        let (counters, events) = (parnass_counters::COUNTERS.len(), parnass_counters::EVENTS.len());
        row(
            out,
            "tools",
            &format!(
                "MPI_T: {} control variables, {counters} performance variables (parnass info --counters), {events} events",
                TABLE.len()
            ),
        );

        let _ = writeln!(out, "\nhow a message travels");
        for protocol in self.protocols.rows() {
            row(out, &limit(protocol.limit, "B"), &format!("{:<8} {}", protocol.name, protocol.meaning));
        }
        let _ = writeln!(
            out,
            "  parnass info --protocols tells more, and why; parnass info --tunables what can be chosen."
        );

        let _ = writeln!(out, "\nwhich algorithm a collective takes (the first line that fits)");
        for rule in RULES {
            let condition = match (rule.several_nodes, rule.oversubscribed, rule.up_to_processes) {
                (true, ..) => "on several nodes".to_owned(),
                (_, true, _) => "more ranks than cores".to_owned(),
                (.., u32::MAX) => "any".to_owned(),
                (.., processes) => format!("up to {processes} ranks"),
            };
            let condition =
                if rule.algorithm == "board" { format!("{condition}, if blocking") } else { condition };
            let name = rule.operation.name();
            let bytes = limit(rule.up_to_bytes, "B");
            let _ = writeln!(out, "  {name:<22} {condition:<32} {bytes:<14} {}", rule.algorithm);
        }
        let _ = writeln!(
            out,
            "  {}=operation:algorithm,... chooses another, of these:",
            TABLE[COLLECTIVE].variable
        );
        for (operation, names) in algorithms() {
            let _ = writeln!(out, "  {operation:<22} {}", names.join(" "));
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let number = |limit: u64| if limit == u64::MAX { Value::Null } else { json!(limit) };
        let protocols: Vec<Value> = self
            .protocols
            .rows()
            .iter()
            .map(|row| json!({ "name": row.name, "up_to_bytes": number(row.limit), "meaning": row.meaning }))
            .collect();
        let rules: Vec<Value> = RULES.iter().map(|rule| {
            json!({
                "operation": rule.operation.name(),
                "several_nodes": rule.several_nodes,
                "oversubscribed": rule.oversubscribed,
                "up_to_processes": if rule.up_to_processes == u32::MAX { Value::Null } else { json!(rule.up_to_processes) },
                "up_to_bytes": number(rule.up_to_bytes),
                "algorithm": rule.algorithm,
            })
        }).collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "standard": "5.0",
            "abi": "1.0",
            "build": build(),
            "prefix": self.prefix.as_ref().map(|prefix| prefix.directory().display().to_string()),
            "fortran": self.fortran,
            "procedures": PROCEDURES,
            "missing": MISSING,
            "processors": {
                "online": self.processors.online,
                "allowed": self.processors.allowed,
                "usable": self.processors.usable,
            },
            "transports": ["shm"],
            "direct_copy": { "allowed": self.direct.is_ok(), "reason": self.direct.as_ref().err() },
            "protocols": protocols,
            "tunables": crate::protocols::tunables_json(&self.decision.settings),
            "measured_values": self.decision.tuned.to_string(),
            "collectives": rules,
            "counters": parnass_counters::COUNTERS.iter().map(|counter| counter.name).collect::<Vec<_>>(),
            "events": parnass_counters::EVENTS.iter().map(|event| event.name).collect::<Vec<_>>(),
        })
    }
}

/// What is not implemented, one name a line.
pub fn missing() -> String {
    MISSING.iter().fold(String::new(), |text, name| text + name + "\n")
}

pub(crate) fn row(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "  {name:<16} {value}");
}

fn build() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!("{profile}, {}-{}", std::env::consts::ARCH, std::env::consts::OS)
}

/// "up to 16 KiB", "up to 1023 B", "any".
pub(crate) fn limit(limit: u64, unit: &str) -> String {
    match limit {
        u64::MAX => "any size".to_owned(),
        limit if limit >= 1 << 20 && limit.is_multiple_of(1 << 20) => {
            format!("up to {} Mi{unit}", limit >> 20)
        }
        limit if limit >= 1 << 10 && limit.is_multiple_of(1 << 10) => {
            format!("up to {} Ki{unit}", limit >> 10)
        }
        limit => format!("up to {limit} {unit}"),
    }
}

/// The algorithms of each operation.
fn algorithms() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut found: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
    for rule in RULES {
        let name = rule.operation.name();
        if found.iter().all(|(known, _)| *known != name) {
            let able = ALGORITHMS.iter().filter(|algorithm| algorithm.operations.contains(&rule.operation));
            found.push((name, able.map(|algorithm| algorithm.name).collect()));
        }
    }
    found
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn facts() -> Facts {
        Facts {
            prefix: Some(Prefix::at("/p")),
            fortran: Some("mpif.h, mpi, mpi_f08 for a compiler".into()),
            processors: Processors { online: 4, allowed: 3, usable: 2 },
            direct: Err("Operation not permitted".into()),
            protocols: Table::new(1000),
            decision: files::decide([], &[]).unwrap(),
            network: Report {
                libfabric: Err("libfabric.so.1: not found".into()),
                taken: Ok("TCP, here".into()),
            },
        }
    }

    #[test]
    fn the_text_tells_each_fact() {
        let text = facts().text();
        for part in [
            "2 for jobs (4 online",
            "not allowed: Operation not permitted",
            "up to 40 B",
            "allreduce",
            "/p",
            "none: libfabric.so.1",
            "TCP, here",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_json_holds_the_tables() {
        let json = facts().json();
        assert_eq!(json["direct_copy"]["allowed"], false);
        assert_eq!(json["protocols"][1]["up_to_bytes"], 999);
        assert_eq!(json["tunables"].as_array().unwrap().len(), TABLE.len());
        assert_eq!(json["collectives"].as_array().unwrap().len(), RULES.len());
        assert_eq!(json["missing"].as_array().unwrap().len(), MISSING.len());
    }

    #[test]
    fn missing_procedures_stand_one_a_line() {
        assert_eq!(missing().lines().count(), MISSING.len());
        assert!(missing().lines().all(|name| name.starts_with("MPI_")));
    }
}
