//! What the provider for shared memory holds of the system goes with a goodbye. Alone in its process, whose files are looked at.

use parnass_transport::{Network, PROCESS_BITS};
use parnass_transport_ofi::{Listener, Ofi, Selection, Tuning};
use std::time::{Duration, Instant};

/// The files of this process's endpoints: the provider names them by its number.
fn files() -> usize {
    let own = format!("{}:", std::process::id());
    let names = std::fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with(&own)).count()
}

/// A rank ends without dropping its network, as all do.
#[test]
fn who_closes_leaves_no_file() {
    let selection = Selection::default();
    let open = || Listener::new("here", Some("shm"), &selection);
    let (first, second) = match (open(), open()) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(reason), _) | (_, Err(reason)) => {
            eprintln!("skip: {reason}");
            return;
        }
    };
    let contacts = [first.contact(), second.contact()];
    let join = |listener: Listener, rank| -> Ofi {
        let lost = Box::new(|loss| panic!("{loss}"));
        let tuning = Tuning { encrypt: false };
        listener.join(rank, &[7; 32], &contacts, Box::new(|| false), lost, tuning).unwrap()
    };
    let job = [join(first, 0), join(second, 1)];
    assert_eq!(files(), 2);
    assert!(job[0].post(1, 1 << PROCESS_BITS, &[5]));
    let start = Instant::now();
    while job[1].take(1, &mut |_| true) == 0 {
        job[0].poll();
        job[1].poll();
        assert!(start.elapsed() < Duration::from_secs(30), "no message");
    }
    std::thread::scope(|scope| job.iter().for_each(|network| drop(scope.spawn(|| network.close()))));
    assert_eq!(files(), 0);
    job.into_iter().for_each(std::mem::forget);
}
