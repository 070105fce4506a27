//! TCP does what every network must do.

use parnass_transport::conformance::{NetworkJob, check_network};
use parnass_transport::{Network, PROCESS_BITS};
use parnass_transport_tcp::{Listener, Selection, Tuning};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn make(size: u32, selection: &str, encrypt: bool) -> NetworkJob {
    let selection = Selection::parse(selection).unwrap();
    let listeners: Vec<Listener> = (0..size).map(|_| Listener::new("here", &selection).unwrap()).collect();
    let contacts: Vec<Vec<u8>> = listeners.iter().map(Listener::contact).collect();
    (0..)
        .zip(listeners)
        .map(|(rank, listener)| {
            let lost = Box::new(|loss| panic!("{loss}"));
            let tuning = Tuning { encrypt };
            let tcp = listener.join(rank, &[7; 32], &contacts, Box::new(|| false), lost, tuning).unwrap();
            Arc::new(tcp) as Arc<dyn parnass_transport::Network>
        })
        .collect()
}

#[test]
fn conforms() {
    check_network(&|size| make(size, "", false));
}

#[test]
fn conforms_over_one_interface() {
    check_network(&|size| make(size, "127.0.0.0/8", false));
}

#[test]
fn conforms_where_it_is_encrypted() {
    check_network(&|size| make(size, "", true));
}

#[test]
fn what_was_said_before_the_end_reaches_a_peer_that_is_slow_to_answer() {
    let selection = Selection::parse("lo").unwrap();
    let [first, second] = [0, 1].map(|_| Listener::new("here", &selection).unwrap());
    let contacts = [first.contact(), second.contact()];
    let join = |listener: Listener, rank| {
        let lost = Box::new(|loss| panic!("{loss}"));
        listener.join(rank, &[7; 32], &contacts, Box::new(|| false), lost, Tuning::default()).unwrap()
    };
    let ends = join(first, 0);
    assert!(ends.post(1, 1 << PROCESS_BITS, &[5]));
    let end = std::thread::spawn(move || ends.close());
    // The kernel takes the call at once; the peer's process gets to it only now.
    std::thread::sleep(Duration::from_secs(6));
    let hears = join(second, 1);
    let mut heard = 0;
    let joined = Instant::now();
    while heard == 0 {
        assert!(joined.elapsed() < Duration::from_secs(60), "the message is lost");
        hears.look();
        hears.take(1, &mut |message| {
            heard = message.words[0];
            true
        });
    }
    assert_eq!(heard, 5);
    end.join().unwrap();
}
