//! What two post on a board in any order arrives, in whose memory it ever stands.

mod support;

use parnass_portals::{Board, ProcessId};
use proptest::prelude::*;
use support::interfaces;

/// A round: the bytes that each of the two posts, if it does, and whether each reads what stands there at once or some rounds later.
type Round = [(Option<usize>, bool); 2];

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let length = prop_oneof![1..60_usize, 60..5000_usize, Just(32 << 10)];
    let one = (proptest::option::weighted(0.8, length), any::<bool>());
    proptest::collection::vec([one.clone(), one], 1..300)
}

fn bytes_of(member: usize, round: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 256 + round as usize * 31 + member * 101) as u8).collect()
}

/// One member: what it has not read yet, oldest first.
struct Member {
    board: Board,
    unread: Vec<(u64, usize)>,
    passed: usize,
}

impl Member {
    fn post(&mut self, me: usize, round: u64, length: usize) {
        assert!(self.board.has_room(round, length as u64), "round {round}");
        let (place, goes_to_and_fro) = self.board.take_place(round, length as u64).expect("memory");
        self.passed += usize::from(goes_to_and_fro);
        let bytes = bytes_of(me, round, length);
        place.write(&bytes);
        self.board.post(round, length as u64);
        if round.is_multiple_of(3) {
            // To look at what one has posted oneself changes nothing.
            let mut own = vec![0; length];
            self.board.data(me as u32, round, length as u64).read(&mut own);
            assert!(own == bytes);
        }
    }

    fn read_all(&mut self, from: usize, last: u64) {
        for (round, length) in self.unread.drain(..) {
            assert_eq!(self.board.posted(from as u32, round), Some(length as u64), "round {round}");
            let mut bytes = vec![0; length];
            self.board.data(from as u32, round, length as u64).read(&mut bytes);
            assert!(bytes == bytes_of(from, round, length), "round {round} of member {from}");
        }
        self.board.done(last);
    }
}

fn play(rounds: &[Round]) -> usize {
    let nics = interfaces(2);
    let name = nics[0].claim_board(2);
    let open = |me: usize| Member {
        board: nics[me].open_board(name, Box::new([ProcessId(0), ProcessId(1)]), me as u32).expect("a board"),
        unread: Vec::new(),
        passed: 0,
    };
    let mut members = [open(0), open(1)];
    for steps in rounds {
        let next = [0, 1].map(|me| members[me].board.next_round());
        assert_eq!(next[0], next[1]);
        let round = next[0];
        members.iter().for_each(|member| member.board.pass(1));
        for me in [0, 1] {
            if let Some(length) = steps[me].0 {
                members[me].post(me, round, length);
                members[1 - me].unread.push((round, length));
            }
        }
        for me in [0, 1] {
            // Who is further behind than this keeps the other from posting.
            if steps[me].1 || round.is_multiple_of(5) {
                members[me].read_all(1 - me, round);
            }
        }
    }
    members.iter().map(|member| member.passed).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_two_post_arrives(rounds in rounds()) {
        play(&rounds);
    }
}

#[test]
fn two_that_both_post_write_where_they_have_read() {
    let rounds: Vec<Round> = vec![[(Some(20_000), true); 2]; 100];
    assert_eq!(play(&rounds), 200, "each in a piece that is passed to and fro");
    let one_way: Vec<Round> = vec![[(Some(20_000), true), (None, true)]; 100];
    assert!(play(&one_way) < 10, "nothing comes back");
}
