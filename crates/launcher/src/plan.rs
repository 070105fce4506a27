//! From a command line to the work of the guardian: on which hosts, how many ranks, started how.

use parnass_bootstrap::{Description, Key, Nodes};

use crate::USAGE_ERROR;
use crate::agent::plan::Roster;
use crate::agent::start::{Named, Way};
use crate::arguments::{Job, RANKS_MAXIMUM};
use crate::environment;
use crate::guardian::Work;
use crate::hosts::{self, Host};
use crate::program::{self, Problem};
use crate::tunables;

/// Says how hosts are reached, where the command line does not.
const STARTER_VARIABLE: &str = "PARNASS_STARTER";

/// Works out who runs what where. `variable` reads the environment.
pub fn work(mut job: Job, variable: impl Fn(&str) -> Option<String>) -> Result<Work, Problem> {
    let usage = |message: String| Problem { message, exit_code: USAGE_ERROR };
    let allocation = allocation(&variable).map_err(usage)?;
    let in_allocation = allocation.is_some();
    let batch_ranks = variable("SLURM_NTASKS").and_then(|text| text.parse().ok()).filter(|_| in_allocation);
    let named = !job.hosts.is_empty();
    if !named {
        job.hosts = allocation.unwrap_or_default();
    }
    let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let way = way(&job, in_allocation, &variable).map_err(usage)?;
    if !way.is_local() {
        merge_here(&mut job.hosts, &here);
    }
    count_ranks(&mut job, batch_ranks.filter(|_| !named)).map_err(usage)?;

    let (mut nodes, mut node, mut below) = (Nodes::one(job.size(), here.as_str()), Some(0), Vec::new());
    if !job.hosts.is_empty() {
        let placed = hosts::place(job.size(), &job.hosts, job.map);
        let (used, of_rank) = only_used(&placed, job.hosts.len());
        let names: Vec<String> = used.iter().map(|&host| job.hosts[host].name.clone()).collect();
        node = (!way.is_local())
            .then(|| names.iter().position(|name| hosts::is_here(name, &here)))
            .flatten()
            .map(|node| node as u32);
        below = (0..names.len() as u32).filter(|&other| Some(other) != node).collect();
        nodes = Nodes::new(of_rank, names).expect("every rank is on a host");
    }
    let programs = if node.is_some() { program::resolve(&job)? } else { Vec::new() };
    let tunables = tunables::decide(&mut job).map_err(usage)?;
    let variables = job.parts.iter().map(environment::of_part).collect();
    let description = Description { nodes, key: Key::random(), tunables, parents: Vec::new() };
    let roster = Roster { description, node, below, way };
    Ok(Work { job, roster, programs, variables, terminals: [false; 2], caller: None })
}

/// The hosts of the batch system's allocation that this process is in, if it is in one of several nodes or tasks.
fn allocation(variable: &impl Fn(&str) -> Option<String>) -> Result<Option<Vec<Host>>, String> {
    if variable("SLURM_JOB_ID").is_none() {
        return Ok(None);
    }
    let Some(nodes) = variable("SLURM_JOB_NODELIST").or_else(|| variable("SLURM_NODELIST")) else {
        return Ok(None);
    };
    let tasks = variable("SLURM_TASKS_PER_NODE");
    hosts::slurm(&nodes, tasks.as_deref())
        .map(Some)
        .map_err(|error| format!("the nodes of this Slurm allocation are not understood: {error}"))
}

/// How agents are started: as the user says, or by the batch system, or by ssh.
fn way(job: &Job, in_allocation: bool, variable: &impl Fn(&str) -> Option<String>) -> Result<Way, String> {
    let program = match &job.prefix {
        Some(prefix) => prefix.join("bin/mpiexec").into_os_string(),
        None => std::env::current_exe().map_or_else(|_| "mpiexec".into(), std::path::PathBuf::into_os_string),
    };
    let mut way = match job.starter.clone().or_else(|| variable(STARTER_VARIABLE)) {
        Some(text) => Way::parse(&text, program)?,
        None if in_allocation => Way::named(Named::Slurm, program),
        None => Way::named(Named::Ssh, program),
    };
    if let Some(fan_out) = job.fan_out {
        way.fan_out = fan_out;
    }
    Ok(way)
}

/// Makes one host of all names of this machine.
fn merge_here(hosts: &mut Vec<Host>, here: &str) {
    let mut found: Option<usize> = None;
    let mut merged: Vec<Host> = Vec::with_capacity(hosts.len());
    for host in hosts.drain(..) {
        match found.filter(|_| hosts::is_here(&host.name, here)) {
            Some(at) => merged[at].slots = Some(merged[at].slots.unwrap_or(1) + host.slots.unwrap_or(1)),
            None => {
                if hosts::is_here(&host.name, here) {
                    found = Some(merged.len());
                }
                merged.push(host);
            }
        }
    }
    *hosts = merged;
}

/// Fills in the numbers of ranks that were not given: one to each slot of the hosts, for a job of one part.
fn count_ranks(job: &mut Job, of_batch: Option<u32>) -> Result<(), String> {
    let hosts = job.hosts.len() as u32;
    let all = match (of_batch, job.map.per_host) {
        (Some(ranks), None) => ranks,
        (_, Some(ranks)) if hosts > 0 => hosts.saturating_mul(ranks),
        _ if hosts > 0 => hosts::slots(&job.hosts),
        _ => 1,
    };
    let single = job.parts.len() == 1;
    for part in job.parts.iter_mut().filter(|part| part.ranks == 0) {
        part.ranks = if single { all.max(1) } else { 1 };
    }
    if job.parts.iter().map(|part| u64::from(part.ranks)).sum::<u64>() > u64::from(RANKS_MAXIMUM) {
        return Err(format!("a job has at most {RANKS_MAXIMUM} ranks"));
    }
    Ok(())
}

/// The hosts that have ranks, and the place of each rank's host among them.
fn only_used(placed: &[u32], hosts: usize) -> (Vec<usize>, Vec<u32>) {
    let mut place = vec![None; hosts];
    for &host in placed {
        place[host as usize] = Some(0);
    }
    let used: Vec<usize> = (0..hosts).filter(|&host| place[host].is_some()).collect();
    for (index, &host) in used.iter().enumerate() {
        place[host] = Some(index as u32);
    }
    let of_rank = placed.iter().map(|&host| place[host as usize].unwrap_or_default()).collect();
    (used, of_rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Request, parse};

    fn job(line: &str) -> Job {
        match parse(line.split(' ').map(Into::into).collect()) {
            Ok(Request::Run(job)) => *job,
            other => panic!("{other:?}"),
        }
    }

    fn shown(line: &str, variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let work = work(job(line), variable).map_err(|problem| problem.message).unwrap();
        let nodes = &work.roster.description.nodes;
        let ranks: Vec<&str> = nodes.of_ranks().iter().map(|&node| nodes.name(node)).collect();
        let way =
            work.roster.way.words.first().map_or("local".into(), |word| word.to_string_lossy().into_owned());
        format!("{} {way} {:?}", ranks.join(","), work.roster.node)
    }

    #[test]
    fn ranks_are_placed_as_the_line_says() {
        assert_eq!(shown("--host a:2,b:2 sh", &[]), "a,a,b,b ssh None");
        assert_eq!(shown("-n 3 --host a:2,b:2,c sh", &[]), "a,a,b ssh None");
        assert_eq!(shown("--map-by node --host a:2,b:2 sh", &[]), "a,b,a,b ssh None");
        assert_eq!(shown("--ppn 1 --host a:2,b:2 sh", &[]), "a,b ssh None");
        assert_eq!(shown("-n 2 --starter local --host a,b sh", &[]), "a,b local None");
        assert_eq!(shown("--host localhost:1,127.0.0.1:1 sh", &[]), "localhost,localhost ssh Some(0)");
        assert_eq!(
            shown("-n 2 --host localhost,b sh", &[("PARNASS_STARTER", "rsh {host}")]),
            "localhost,b rsh Some(0)"
        );
        assert_eq!(shown("-n 1 --host a sh : -n 2 --host b sh", &[]), "a,a,b ssh None");
    }

    #[test]
    fn an_allocation_of_slurm_is_used() {
        let slurm =
            [("SLURM_JOB_ID", "1"), ("SLURM_JOB_NODELIST", "n[1-2]"), ("SLURM_TASKS_PER_NODE", "2(x2)")];
        assert_eq!(shown("sh", &slurm), "n1,n1,n2,n2 srun None");
        let fewer = [slurm[0], slurm[1], slurm[2], ("SLURM_NTASKS", "3")];
        assert_eq!(shown("sh", &fewer), "n1,n1,n2 srun None");
        assert_eq!(shown("-n 1 sh", &slurm), "n1 srun None");
        assert_eq!(shown("--host n2 sh", &slurm), "n2 srun None");
    }
}
