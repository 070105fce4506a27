//! What the provider for shared memory holds of the system goes with a goodbye. Of two processes, whose files are looked at: where
//! endpoints share a process, the provider lets one use the memory of another that has closed.

use parnass_transport::{Network, PROCESS_BITS};
use parnass_transport_ofi::{Listener, Ofi, Reads, Selection, Tuning};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Set where this process is rank 1: it is told the contact of rank 0 on standard input, and tells its own on standard error.
const SECOND: &str = "PARNASS_TEST_SECOND";

/// The files of this process's endpoint: the provider names them by its number.
fn files() -> usize {
    let own = format!("{}:", std::process::id());
    let names = std::fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with(&own)).count()
}

fn join(listener: Listener, rank: u32, contacts: &[Vec<u8>; 2]) -> Ofi {
    let lost = Box::new(|loss| panic!("{loss}"));
    let tuning = Tuning { encrypt: false };
    let network = listener.join(rank, &[7; 32], contacts, Box::new(|| false), lost, tuning).unwrap();
    assert_eq!(files(), 1);
    network
}

/// A rank ends without dropping its network, as all do.
fn end(network: Ofi) {
    network.close();
    assert_eq!(files(), 0);
    std::mem::forget(network);
}

fn second() {
    let listener = Listener::new("here", Some("shm"), &Selection::default(), Reads::Auto).unwrap();
    let own = listener.contact();
    let mut first = Vec::new();
    std::io::stdin().read_to_end(&mut first).unwrap();
    std::io::stderr().write_all(&[u8::try_from(own.len()).unwrap()]).unwrap();
    std::io::stderr().write_all(&own).unwrap();
    let network = join(listener, 1, &[first, own]);
    let start = Instant::now();
    while network.take(1, &mut |_| true) == 0 {
        network.poll();
        assert!(start.elapsed() < Duration::from_secs(30), "no message");
    }
    end(network);
}

#[test]
fn who_closes_leaves_no_file() {
    if std::env::var_os(SECOND).is_some() {
        return second();
    }
    let listener = match Listener::new("here", Some("shm"), &Selection::default(), Reads::Auto) {
        Ok(listener) => listener,
        Err(reason) => {
            eprintln!("skip: {reason}");
            return;
        }
    };
    let own = listener.contact();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["who_closes_leaves_no_file", "--exact", "--nocapture"])
        .env(SECOND, "")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&own).unwrap();
    let mut said = child.stderr.take().unwrap();
    let mut length = [0];
    said.read_exact(&mut length).unwrap();
    let mut contact = vec![0; usize::from(length[0])];
    said.read_exact(&mut contact).unwrap();
    let network = join(listener, 0, &[own, contact]);
    assert!(network.post(1, 1 << PROCESS_BITS, &[5]));
    end(network);
    let trouble = std::io::read_to_string(said).unwrap();
    assert!(child.wait().unwrap().success(), "{trouble}");
}
