//! PMIx: what Slurm (`srun --mpi=pmix`), PRRTE (`prterun`) and Open MPI's `mpirun` say to the processes that they start.

use std::io;

use parnass_base::pmix::Pmix;

use crate::foreign::Store;

/// The variables by which a process knows that a PMIx launcher has started it.
pub const VARIABLES: [&str; 2] = ["PMIX_NAMESPACE", "PMIX_RANK"];

/// Connects to the server. Gives the store, this process's rank, and the node of each rank.
pub fn connect() -> io::Result<(Pmix, u32, Vec<u32>)> {
    let pmix = Pmix::connect()?;
    let size = pmix.number(None, "pmix.job.size")?;
    let numbers =
        (0..size).map(|rank| pmix.number(Some(rank), "pmix.nodeid")).collect::<io::Result<Vec<u32>>>()?;
    let rank = pmix.rank();
    Ok((pmix, rank, in_order(&numbers)))
}

/// Nodes numbered as they appear, from any numbers for them.
fn in_order(numbers: &[u32]) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let index = |number: &u32| {
        found.iter().position(|known| known == number).unwrap_or_else(|| {
            found.push(*number);
            found.len() - 1
        }) as u32
    };
    numbers.iter().map(index).collect()
}

impl Store for Pmix {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        Pmix::put(self, name, bytes)
    }

    fn get(&mut self, rank: u32, name: &str) -> io::Result<Vec<u8>> {
        self.bytes(rank, name)
    }

    fn barrier(&mut self) -> io::Result<()> {
        self.fence()
    }

    fn finalize(&mut self) -> io::Result<()> {
        Pmix::finalize(self)
    }

    fn abort(&mut self, code: i32, message: &str) {
        Pmix::abort(self, code, message);
    }

    fn app_number(&mut self) -> i32 {
        self.number(Some(self.rank()), "pmix.appnum").map_or(-1, |number| number as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_as_they_appear() {
        assert_eq!(in_order(&[7, 7, 3, 7, 0]), [0, 0, 1, 0, 2]);
        assert!(in_order(&[]).is_empty());
    }
}
