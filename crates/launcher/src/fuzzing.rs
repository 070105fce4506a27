//! Everything that reads what an agent or a guardian has sent, for the fuzz targets in fuzz/ and the tests: nothing that comes may
//! make it panic.

use crate::agent::frames::{Frame, Order, Report, append, first};
use crate::agent::plan::{Plan, Roster};
use crate::agent::start::Way;
use crate::arguments::{Job, Part};
use parnass_bootstrap::{Description, Key, Nodes};

/// How many decoders there are.
pub const DECODERS: usize = 4;

/// What one decoder reads, valid: for it to be changed.
pub fn sample(decoder: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    match decoder {
        0 => [Order::Signal(15), Order::Exchanged { wave: 1, round: 2, parts: vec![3; 9] }]
            .iter()
            .for_each(|order| append(&mut bytes, order)),
        1 => [
            Report::Output { rank: 1, stream: 0, bytes: b"hello".to_vec() },
            Report::Exchange { wave: 1, round: 2, parts: vec![(3, vec![4; 5]), (6, Vec::new())] },
        ]
        .iter()
        .for_each(|report| append(&mut bytes, report)),
        2 => return Order::Exchanged { wave: 1, round: 2, parts: vec![3; 9] }.encode(),
        _ => return plan().encode(),
    }
    bytes
}

/// Two hosts, the second below this one, and one program.
fn plan() -> Plan {
    let nodes = Nodes::new(vec![0, 1], vec!["a".into(), "b".into()]).expect("two nodes");
    let description =
        Description { nodes, key: Key([7; 32]), tunables: vec!["spins=5".into()], parents: Vec::new() };
    let way = Way { words: vec!["ssh".into(), "{host}".into()], program: "mpiexec".into(), fan_out: 32 };
    let part = Part { ranks: 2, program: "hello".into(), arguments: vec!["-v".into()], ..Part::default() };
    Plan {
        roster: Roster { description, node: Some(0), below: vec![1], way },
        job: Job { parts: vec![part], ..Job::default() },
        variables: vec![[("HOME".into(), "/home".into())].into()],
        directory: "/tmp".into(),
        terminals: [true, false],
    }
}

/// Gives bytes to one decoder.
///
/// # Panics
/// If what was understood is not understood when it is said again.
pub fn decode(decoder: usize, bytes: &[u8]) {
    match decoder {
        0 => frames::<Order>(bytes),
        1 => frames::<Report>(bytes),
        2 => {
            if let Some(order) = Order::decode(bytes) {
                assert_eq!(order.encode(), bytes);
            }
        }
        _ => {
            if let Some(plan) = Plan::decode(bytes) {
                assert!(Plan::decode(&plan.encode()).is_some());
            }
        }
    }
}

fn frames<F: Frame>(mut bytes: &[u8]) {
    while let Ok(Some((message, length))) = first::<F>(bytes) {
        let _ = message.encode();
        bytes = &bytes[length..];
    }
}
