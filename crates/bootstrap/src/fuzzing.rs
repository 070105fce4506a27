//! Everything that reads what others have sent, for the fuzz targets in fuzz/ and the tests: nothing that comes may make it panic.

use crate::description::{Description, Key, Nodes, decode_parts, encode_parts};
use crate::pmi::{Version, connect, nodes_of_mapping};
use crate::protocol::{Address, Message, Secret, Welcome};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// How many decoders there are.
pub const DECODERS: usize = 7;

/// What one decoder reads, valid: for it to be changed.
pub fn sample(decoder: usize) -> Vec<u8> {
    match decoder {
        0 => {
            let processors = vec![1, 12];
            let welcome = Welcome { app_number: 1, local_cpus: 2, bound: true, survives: true, processors };
            Message::Welcome(welcome).encode()
        }
        1 => Address { name: "parnass-1-2".into(), secret: Secret::random() }.to_string().into_bytes(),
        2 => {
            let tunables = vec!["spins=5".to_owned()];
            Description { nodes: Nodes::one(3, "host"), key: Key([7; 32]), tunables, parents: vec![1, 2] }.encode()
        }
        3 => encode_parts(&[vec![1, 2], Vec::new(), vec![3]]),
        4 => b"(vector,(0,2,4),(2,1,3))".to_vec(),
        5 => b"cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n36    cmd=fullinit-response;rank=0;size=1;\
               31    cmd=job-getid-response;jobid=j;63    cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,1,1));"
            .to_vec(),
        _ => b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=maxes kvsname_max=256 vallen_max=64 rc=0\n\
               cmd=my_kvsname kvsname=kvs_1\ncmd=get_result rc=0 value=n1\ncmd=get_result rc=0 value=0aff\n\
               cmd=appnum appnum=3\ncmd=barrier_out rc=0\n"
            .to_vec(),
    }
}

/// Gives bytes to one decoder.
///
/// # Panics
/// If what was understood is not understood when it is said again.
pub fn decode(decoder: usize, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match decoder {
        0 => {
            if let Some(message) = Message::decode(bytes) {
                let _ = message.encode();
            }
        }
        1 => {
            if let Some(address) = Address::parse(&text) {
                assert_eq!(Address::parse(&address.to_string()), Some(address));
            }
        }
        2 => {
            if let Some(description) = Description::decode(bytes) {
                assert!(Description::decode(&description.encode()).is_some());
            }
        }
        3 => {
            if let Some(parts) = decode_parts(bytes) {
                assert_eq!(encode_parts(&parts), bytes);
            }
        }
        4 => {
            if let Some(nodes) = nodes_of_mapping(&text, 7) {
                assert_eq!(nodes.len(), 7);
            }
        }
        version => {
            let first = if version == 5 { Version::Two } else { Version::One };
            let Ok((near, mut far)) = UnixStream::pair() else { return };
            // A launcher says no more at once than a socket takes.
            let _ = far.write_all(&bytes[..bytes.len().min(64 << 10)]);
            let _ = far.shutdown(std::net::Shutdown::Write);
            if let Ok(mut client) = connect(OwnedFd::from(near), first, 0, 1, "job") {
                let _ = client.mapping();
                let _ = client.get(0, "name");
                let _ = client.app_number();
                let _ = client.barrier();
            }
        }
    }
}
