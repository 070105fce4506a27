//! TCP does what every network must do.

use parnass_transport::conformance::{NetworkJob, check_network};
use parnass_transport_tcp::{Listener, Selection, Tuning};
use std::sync::Arc;

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
