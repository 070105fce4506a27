//! Who is not of the job gets in nowhere, and changes nothing; a peer that is lost is named.

use parnass_transport::{Network, PROCESS_BITS};
use parnass_transport_tcp::{Listener, Loss, Refusal, Selection, Tcp, Tuning};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Two ranks that see each other, the port of the second, and who each has lost.
struct Pair {
    ranks: [Tcp; 2],
    port: u16,
    losses: [Receiver<Loss>; 2],
}

fn pair(keys: [u8; 2]) -> Pair {
    let selection = Selection::parse("lo").unwrap();
    let listeners = [0, 1].map(|rank| Listener::new(&format!("host{rank}"), &selection).unwrap());
    let port = listeners[1].port();
    let contacts: Vec<_> = listeners.iter().map(Listener::contact).collect();
    let mut losses = Vec::new();
    let ranks: Vec<Tcp> = (0..)
        .zip(listeners)
        .map(|(rank, listener)| {
            let (tell, told) = channel();
            losses.push(told);
            let lost = Box::new(move |loss| drop(tell.send(loss)));
            let key = [keys[rank as usize]; 32];
            listener.join(rank, &key, &contacts, Box::new(|| false), lost, Tuning::default()).unwrap()
        })
        .collect();
    Pair { ranks: ranks.try_into().unwrap(), port, losses: losses.try_into().unwrap() }
}

fn until(what: &str, mut attempt: impl FnMut() -> bool) {
    let start = Instant::now();
    while !attempt() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Rank 0 sends a number to rank 1, which takes it.
fn exchange(ranks: &[Tcp; 2], number: u64) {
    assert!(ranks[0].post(1, 1 << PROCESS_BITS, &[number]));
    until("a message", || {
        ranks[0].poll();
        ranks[1].poll();
        let mut seen = None;
        ranks[1].take(1, &mut |message| {
            seen = Some(message.words[0]);
            true
        });
        seen.is_some_and(|seen| {
            assert_eq!(seen, number);
            true
        })
    });
}

fn call(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).unwrap()
}

/// What a listener says before it hangs up.
fn answer(mut stream: TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    // A reset is as good an end as any.
    let _ = stream.read_to_end(&mut said);
    said
}

#[test]
fn garbage_half_a_hello_and_scans_change_nothing() {
    let Pair { ranks, port, losses } = pair([7, 7]);
    exchange(&ranks, 1);
    let mut garbage = call(port);
    garbage.write_all(&[0xab; 4096]).unwrap();
    assert!(answer(garbage).is_empty());
    let mut http = call(port);
    http.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nAccept: */*, and a little more\r\n\r\n")
        .unwrap();
    assert!(answer(http).is_empty());
    // Connects and hangs up, as a port scanner does.
    drop(call(port));
    // A slow sender, and one that says nothing at all.
    let mut slow = call(port);
    slow.write_all(b"Parna").unwrap();
    let silent = call(port);
    exchange(&ranks, 2);
    assert!(answer(slow).is_empty() && answer(silent).is_empty());
    let refusals = ranks[1].refusals();
    until("all are counted", || refusals.total() == 5);
    assert_eq!((refusals.of(Refusal::Garbage), refusals.of(Refusal::Slow)), (3, 2));
    exchange(&ranks, 3);
    assert_eq!((ranks[0].connections(), ranks[1].connections()), (1, 1));
    assert!(losses.iter().all(|losses| losses.try_recv().is_err()));
}

#[test]
fn more_strangers_than_may_wait_do_not_keep_a_rank_out() {
    let Pair { ranks, port, .. } = pair([7, 7]);
    let strangers: Vec<TcpStream> = (0..400).map(|_| call(port)).collect();
    exchange(&ranks, 1);
    until("the oldest make room", || ranks[1].refusals().of(Refusal::Crowd) >= 100);
    drop(strangers);
}

#[test]
fn a_rank_of_another_job_is_refused_and_says_what_it_has_tried() {
    let Pair { ranks, port, losses } = pair([7, 8]);
    assert!(ranks[0].post(1, 1 << PROCESS_BITS, &[1]));
    let loss = losses[0].recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(loss.rank, 1);
    for word in ["rank 1 on host host1 cannot be reached", &format!("127.0.0.1:{port}"), "PARNASS_INTERFACE"]
    {
        assert!(loss.text.contains(word), "{word}: {loss}");
    }
    assert!(ranks[1].refusals().of(Refusal::OtherJob) > 0);
}

#[test]
fn a_connection_that_breaks_is_named() {
    let Pair { ranks, port, losses } = pair([7, 7]);
    exchange(&ranks, 1);
    ranks[0].cut(1);
    until("the loss is noticed", || {
        ranks.iter().for_each(|rank| {
            rank.look();
            rank.take(1, &mut |_| true);
        });
        match losses[0].try_recv() {
            Err(_) => false,
            Ok(loss) => {
                for word in ["rank 1 on host host1", &format!("127.0.0.1:{port}"), "of lo", "lost"] {
                    assert!(loss.text.contains(word), "{word}: {loss}");
                }
                true
            }
        }
    });
    assert_eq!(losses[1].recv_timeout(Duration::from_secs(60)).unwrap().rank, 0);
}

#[test]
fn who_says_goodbye_is_not_lost() {
    let Pair { ranks: [first, second], losses, .. } = pair([7, 7]);
    let ranks = [first, second];
    exchange(&ranks, 1);
    let [first, second] = ranks;
    drop(first);
    until("the goodbye", || {
        second.look();
        second.take(1, &mut |_| true);
        // What is said to one that is gone is said to nobody.
        second.post(0, 1 << PROCESS_BITS | 1, &[1]) && !second.look()
    });
    drop(second);
    assert!(losses[1].try_recv().is_err());
}

/// What an intruder on the way from rank 0 to rank 1 does with the records that he sees.
type Meddle = Box<dyn FnMut(Vec<u8>) -> Option<Vec<u8>> + Send>;

/// Bytes of what the caller says in a handshake: hello and answer.
const SAID: [usize; 2] = [68, 32];

/// Copies a connection from `from` to `to`: the handshake as it is; then record by record, each told to `seen`, as `meddle` leaves
/// it. `None` ends the connection.
fn relay(mut from: TcpStream, mut to: TcpStream, seen: &Sender<Vec<u8>>, mut meddle: Meddle) -> Option<()> {
    for length in SAID {
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes).ok()?;
        to.write_all(&bytes).ok()?;
    }
    loop {
        let mut record = vec![0; 4];
        from.read_exact(&mut record).ok()?;
        let length = u32::from_le_bytes(record[..].try_into().unwrap()) as usize;
        record.resize(4 + length + 16, 0);
        from.read_exact(&mut record[4..]).ok()?;
        seen.send(record.clone()).ok()?;
        let Some(record) = meddle(record) else {
            let _ = to.shutdown(std::net::Shutdown::Both);
            return None;
        };
        to.write_all(&record).ok()?;
    }
}

/// Two ranks with encrypted connections, and an intruder through whose hands goes all that rank 0 tells rank 1. Returns
/// them and what the intruder sees.
fn pair_with_intruder(meddle: Meddle) -> (Pair, Receiver<Vec<u8>>) {
    let selection = Selection::parse("lo").unwrap();
    let listeners = [0, 1].map(|rank| Listener::new(&format!("host{rank}"), &selection).unwrap());
    let port = listeners[1].port();
    let intruder = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let contacts: Vec<Vec<u8>> = listeners.iter().map(Listener::contact).collect();
    // To rank 0 the intruder's port is that of rank 1. It stands behind the version and two names with their lengths.
    let mut deceived = contacts.clone();
    let mut at = 1;
    for _ in 0..2 {
        at += 1 + usize::from(deceived[1][at]);
    }
    assert_eq!(deceived[1][at..at + 2], port.to_le_bytes());
    deceived[1][at..at + 2].copy_from_slice(&intruder.local_addr().unwrap().port().to_le_bytes());
    let (tell, seen) = channel();
    std::thread::spawn(move || {
        let (from, _) = intruder.accept().unwrap();
        let to = call(port);
        let (mut back_from, mut back_to) = (to.try_clone().unwrap(), from.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
        relay(from, to, &tell, meddle);
    });
    let mut losses = Vec::new();
    let ranks: Vec<Tcp> = (0..)
        .zip(listeners)
        .map(|(rank, listener)| {
            let (tell, told) = channel();
            losses.push(told);
            let lost = Box::new(move |loss| drop(tell.send(loss)));
            let contacts = if rank == 0 { &deceived } else { &contacts };
            let tuning = Tuning { encrypt: true };
            listener.join(rank, &[7; 32], contacts, Box::new(|| false), lost, tuning).unwrap()
        })
        .collect();
    (Pair { ranks: ranks.try_into().unwrap(), port, losses: losses.try_into().unwrap() }, seen)
}

/// Rank 0 sends numbers, each in a record of its own; what rank 1 takes until it has lost rank 0, and what it says of that.
fn meddled(numbers: u64, meddle: Meddle) -> (Vec<u64>, Loss) {
    let (Pair { ranks, losses, .. }, seen) = pair_with_intruder(meddle);
    for number in 0..numbers {
        assert!(ranks[0].post(1, 1 << PROCESS_BITS, &[number, 0x5345_4352_4554]));
        until("a record", || {
            ranks[0].poll();
            seen.try_recv().is_ok_and(|record| {
                assert!(!record.windows(6).any(|window| window == b"TERCES"), "the text is seen");
                true
            })
        });
    }
    let (mut taken, mut lost) = (Vec::new(), None);
    until("the loss", || {
        ranks[1].look();
        ranks[1].take(1, &mut |message| {
            taken.push(message.words[0]);
            true
        });
        lost = losses[1].try_recv().ok();
        lost.is_some()
    });
    (taken, lost.unwrap())
}

#[test]
fn encrypted_ranks_hear_each_other_and_an_intruder_does_not() {
    let (Pair { ranks, losses, .. }, seen) = pair_with_intruder(Box::new(Some));
    for number in 1..20 {
        exchange(&ranks, number);
    }
    assert!(seen.try_iter().count() > 0);
    assert!(losses.iter().all(|losses| losses.try_recv().is_err()));
}

#[test]
fn a_bit_that_is_flipped_on_the_way_is_noticed() {
    let mut count = 0;
    let flip = move |mut record: Vec<u8>| {
        count += 1;
        if count == 2 {
            record[10] ^= 4;
        }
        Some(record)
    };
    let (taken, loss) = meddled(3, Box::new(flip));
    assert_eq!(taken, [0]);
    assert!(loss.text.contains("rank 0 on host host0") && loss.text.contains("is changed"), "{loss}");
}

#[test]
fn a_record_that_is_repeated_is_noticed() {
    let (taken, loss) = meddled(2, Box::new(|record: Vec<u8>| Some([&record[..], &record].concat())));
    assert_eq!(taken, [0]);
    assert!(loss.text.contains("repeated"), "{loss}");
}

#[test]
fn records_that_change_places_are_noticed() {
    let mut kept: Option<Vec<u8>> = None;
    let swap = move |record: Vec<u8>| {
        Some(match kept.take() {
            None => {
                kept = Some(record);
                Vec::new()
            }
            Some(first) => [record, first].concat(),
        })
    };
    let (taken, loss) = meddled(2, Box::new(swap));
    assert!(taken.is_empty(), "{taken:?}");
    assert!(loss.text.contains("out of its place"), "{loss}");
}

#[test]
fn a_stream_that_is_cut_short_is_noticed() {
    let mut count = 0;
    let cut = move |record: Vec<u8>| {
        count += 1;
        (count < 2).then_some(record)
    };
    let (taken, loss) = meddled(2, Box::new(cut));
    assert_eq!(taken, [0]);
    assert!(loss.text.contains("ended without a goodbye"), "{loss}");
}
