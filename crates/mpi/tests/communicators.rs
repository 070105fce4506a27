//! Making communicators, with several processes in one program.

mod common;

use common::{Random, run};
use parnass_base::Scratch;
use parnass_mpi::comm::topology::{Cartesian, Edge};
use parnass_mpi::constants::*;
use parnass_mpi::environment::Placement;
use parnass_mpi::group::Comparison;
use parnass_mpi::process::UserBytes;
use parnass_mpi::{Communicator, Errhandler, Group, Info, Plane, Process, Request, ThreadLevel};
use parnass_portals::ProcessId;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

const SIZES: [u32; 5] = [1, 2, 3, 5, 8];

fn job(size: u32, body: impl Fn(&Arc<Process>) + Sync) {
    run(size, ThreadLevel::Single, body);
}

/// Every process sends its number to every peer and checks what comes, on the communicator's point-to-point plane.
fn talk(process: &Arc<Process>, comm: &Communicator) {
    let own = Scratch::new(4);
    own.address().write(&process.rank().to_le_bytes());
    let places: Vec<Scratch> = (0..comm.remote_size()).map(|_| Scratch::new(4)).collect();
    let bytes = |place: &Scratch| UserBytes { address: place.address(), length: 4 };
    let mut operations = Vec::new();
    for (source, place) in (0..).zip(&places) {
        let receive = process.start_receive_bytes(comm, Plane::PointToPoint, source, 9, bytes(place));
        operations.push(receive.unwrap());
    }
    for target in 0..comm.remote_size() {
        let send = process.start_send_bytes(comm, Plane::PointToPoint, target, 9, bytes(&own));
        operations.push(send.unwrap());
    }
    for mut operation in operations {
        process.wait_until(operation.awaited(), || operation.poll(process)).unwrap();
    }
    for (source, place) in (0..).zip(&places) {
        let mut number = [0; 4];
        place.address().read(&mut number);
        assert_eq!(ProcessId(u32::from_le_bytes(number)), comm.peer(source));
    }
}

fn members(group: &Group) -> Vec<u32> {
    group.processes().map(|process| process.0).collect()
}

#[test]
fn duplicates_have_a_space_of_their_own() {
    for size in SIZES {
        job(size, |process| {
            let world = process.world();
            world.set_errhandler(Errhandler::Return);
            let mut hints = Info::new();
            hints.set(b"mpi_assert_no_any_tag", b"true").unwrap();
            let twin = world.duplicate(process, 0, None).unwrap();
            let hinted = twin.duplicate(process, 0, Some(&hints)).unwrap();
            let again = hinted.duplicate(process, 0, None).unwrap();
            for comm in [&twin, &hinted, &again] {
                assert_eq!(world.compare(comm), Comparison::Congruent);
                assert_eq!(comm.errhandler(), Errhandler::Return);
                assert!(comm.name().is_empty());
                talk(process, comm);
            }
            assert!(twin.info().is_empty());
            assert_eq!((hinted.info(), again.info()), (hints.clone(), hints));
            let contexts = [world, &twin, &hinted, &again].map(|comm| comm.context(Plane::PointToPoint));
            assert_eq!(contexts.iter().collect::<HashSet<_>>().len(), 4);
        });
    }
}

#[test]
fn several_duplications_are_under_way_at_once() {
    for size in SIZES {
        job(size, |process| {
            let started: Vec<_> =
                (0..6).map(|_| process.world().start_duplicate(process, 0, None).unwrap()).collect();
            // Others complete theirs in another order.
            let mut order: Vec<usize> = (0..6).collect();
            order.rotate_left(process.rank() as usize % 6);
            for index in order {
                process.wait_until(None, || started[index].1.poll(process)).unwrap();
            }
            for (duplicate, _) in &started {
                talk(process, duplicate);
            }
        });
    }
}

#[test]
fn splits_follow_color_and_key() {
    for size in SIZES {
        job(size, |process| {
            for seed in 0..20 {
                let mut random = Random::new(seed);
                let choices: Vec<(i32, i32)> = (0..size)
                    .map(|_| {
                        let color = random.below(4) as i32;
                        (if color == 3 { MPI_UNDEFINED } else { color }, random.below(3) as i32 - 1)
                    })
                    .collect();
                let (color, key) = choices[process.rank() as usize];
                let made = process.world().split(process, color, key).unwrap();
                if color == MPI_UNDEFINED {
                    assert!(made.is_none());
                    continue;
                }
                let made = made.unwrap();
                let mut expected: Vec<u32> =
                    (0..size).filter(|&rank| choices[rank as usize].0 == color).collect();
                expected.sort_by_key(|&rank| choices[rank as usize].1);
                assert_eq!(members(made.group()), expected);
                assert_eq!(expected[made.rank() as usize], process.rank());
                talk(process, &made);
            }
            let error = process.world().split(process, -5, 0).unwrap_err();
            assert_eq!(error.class(), MPI_ERR_ARG);
        });
    }
}

#[test]
fn subsets_are_created_by_all_or_by_their_members() {
    for size in SIZES {
        job(size, |process| {
            let world = process.world();
            let even = Group::from_processes((0..size).step_by(2).map(ProcessId).collect());
            let odd = world.group().difference(&even);
            let own = if process.rank() % 2 == 0 { &even } else { &odd };
            // Different groups in one call.
            let made = world.create(process, own).unwrap().unwrap();
            assert_eq!(made.group(), own);
            talk(process, &made);
            // A group that lacks some callers.
            let made = world.create(process, &even).unwrap();
            assert_eq!(made.is_some(), process.rank() % 2 == 0);
            // Only members call, and two overlapping creations are told apart by their tags.
            if process.rank() % 2 == 0 {
                let turned = Group::from_processes(members(&even).into_iter().rev().map(ProcessId).collect());
                let first = world.create_group(process, &even, 1).unwrap().unwrap();
                let second = world.create_group(process, &turned, 2).unwrap().unwrap();
                talk(process, &second);
                talk(process, &first);
                assert_eq!(second.group(), &turned);
            }
            assert!(world.create(process, &Group::empty()).unwrap().is_none());
            let stranger = Group::single(ProcessId(size));
            assert_eq!(world.create(process, &stranger).unwrap_err().class(), MPI_ERR_GROUP);
            let other = Group::single(ProcessId((process.rank() + 1) % size));
            if size > 1 {
                assert!(world.create_group(process, &other, 0).unwrap().is_none());
            }
            assert_eq!(world.create_group(process, own, -1).unwrap_err().class(), MPI_ERR_TAG);
        });
    }
}

#[test]
fn creation_from_groups_needs_no_parent() {
    job(4, |process| {
        let hints = Info::new();
        let world = process.world().group().clone();
        let make = |group: &Group, tag: &[u8]| {
            Communicator::create_from_group(process, group, tag, &hints, Errhandler::Return).unwrap()
        };
        let made = make(&world, b"all").unwrap();
        assert_eq!(made.errhandler(), Errhandler::Return);
        talk(process, &made);
        let low = world.include(&[0, 1]).unwrap();
        let high = world.include(&[2, 3]).unwrap();
        let (own, other) = if process.rank() < 2 { (&low, &high) } else { (&high, &low) };
        let inter = Communicator::create_intercommunicator_from_groups(
            process,
            own,
            1,
            other,
            1,
            b"both",
            &hints,
            Errhandler::Return,
        );
        let inter = inter.unwrap().unwrap();
        assert_eq!((inter.group(), inter.remote_group().unwrap()), (own, other));
        talk(process, &inter);
        assert!(make(&Group::empty(), b"nobody").is_none());
    });
}

/// An intercommunicator between the processes below and from `cut` on; the leaders are the last of their groups.
fn bridge(process: &Arc<Process>, cut: u32) -> Arc<Communicator> {
    let (world, size) = (process.world(), process.size());
    let low = process.rank() < cut;
    let side = world.split(process, i32::from(!low), 0).unwrap().unwrap();
    let remote_leader = if low { size - 1 } else { cut - 1 };
    let leader = side.size() - 1;
    let made = side.create_intercommunicator(process, leader, Some(world), remote_leader as i32, 5).unwrap();
    assert!(made.is_inter());
    assert_eq!(members(made.group()), if low { (0..cut).collect::<Vec<_>>() } else { (cut..size).collect() });
    assert_eq!(
        members(made.remote_group().unwrap()),
        if low { (cut..size).collect::<Vec<_>>() } else { (0..cut).collect() }
    );
    made
}

#[test]
fn intercommunicators_join_two_groups() {
    for (size, cut) in [(2, 1), (3, 1), (5, 2), (8, 7)] {
        job(size, |process| {
            let inter = bridge(process, cut);
            let low = process.rank() < cut;
            talk(process, &inter);
            let twin = inter.duplicate(process, 0, None).unwrap();
            assert_eq!(inter.compare(&twin), Comparison::Congruent);
            assert_eq!(inter.compare(process.world()), Comparison::Unequal);
            talk(process, &twin);
            talk(process, twin.local_communicator().unwrap());
            let (second, request) = inter.start_duplicate(process, 0, None).unwrap();
            process.wait_until(None, || request.poll(process)).unwrap();
            talk(process, &second);

            let all: Vec<u32> = (0..size).collect();
            let turned: Vec<u32> = (cut..size).chain(0..cut).collect();
            for (high, expected) in [(!low, &all), (low, &turned), (false, &all), (true, &all)] {
                let merged = inter.merge(process, high).unwrap();
                assert_eq!(&members(merged.group()), expected);
                assert!(!merged.is_inter());
                talk(process, &merged);
            }
        });
    }
}

#[test]
fn intercommunicators_are_split_and_cut_down() {
    for (size, cut) in [(2, 1), (5, 2), (8, 4)] {
        job(size, |process| {
            let inter = bridge(process, cut);
            let low = process.rank() < cut;
            let sides = if low { [0..cut, cut..size] } else { [cut..size, 0..cut] };
            // Colours by rank: what only one side has gives nothing.
            let color = inter.rank();
            let made = inter.split(process, color, 0).unwrap();
            assert_eq!(made.is_some(), color < inter.remote_size());
            if let Some(made) = made {
                assert_eq!((made.size(), made.remote_size()), (1, 1));
                talk(process, &made);
            }
            let made = inter.split(process, 3, -inter.rank()).unwrap().unwrap();
            let reversed = sides.clone().map(|side| side.rev().collect::<Vec<u32>>());
            assert_eq!([members(made.group()), members(made.remote_group().unwrap())], reversed);
            talk(process, &made);
            assert!(inter.split(process, MPI_UNDEFINED, 0).unwrap().is_none());

            let last = inter.group().include(&[inter.size() - 1]).unwrap();
            let made = inter.create(process, &last).unwrap();
            assert_eq!(made.is_some(), inter.rank() == inter.size() - 1);
            if let Some(made) = made {
                assert_eq!((made.size(), made.remote_size()), (1, 1));
                talk(process, &made);
            }
            let nobody = if low { Group::empty() } else { inter.group().clone() };
            assert!(inter.create(process, &nobody).unwrap().is_none());
        });
    }
}

#[test]
fn groups_of_an_intercommunicator_must_not_overlap() {
    job(3, |process| {
        let world = process.world();
        // Everybody brings the whole world on one side, and one process of it on the other.
        let error = world.create_intercommunicator(process, 0, Some(world), 1, 0).unwrap_err();
        assert_eq!(error.class(), if process.rank() == 0 { MPI_ERR_RANK } else { MPI_ERR_OTHER });
        let own = process.self_communicator();
        assert_eq!(
            own.create_intercommunicator(process, 1, Some(world), 0, 0).unwrap_err().class(),
            MPI_ERR_RANK
        );
        assert_eq!(own.create_intercommunicator(process, 0, None, 0, 0).unwrap_err().class(), MPI_ERR_COMM);
        assert_eq!(
            own.create_intercommunicator(process, 0, Some(world), 3, 0).unwrap_err().class(),
            MPI_ERR_RANK
        );
        assert_eq!(
            own.create_intercommunicator(process, 0, Some(world), 1, -2).unwrap_err().class(),
            MPI_ERR_TAG
        );
        assert_eq!(own.merge(process, true).unwrap_err().class(), MPI_ERR_COMM);
        assert!(own.remote_group().is_err());
    });
}

#[test]
fn splits_by_resource() {
    job(4, |process| {
        let world = process.world();
        let placement = Placement::of_this_process();
        let (made, _) = world.split_type(process, MPI_COMM_TYPE_SHARED, 0, None, &placement).unwrap();
        // All of them, or those of this rank's node: ranks are dealt out to two.
        let (rank, near) = (process.rank(), members(made.unwrap().group()));
        let one_node = near == [0, 1, 2, 3];
        assert!(one_node || near == [rank % 2, rank % 2 + 2], "{near:?}");
        let key = -(process.rank() as i32);
        let mine = if process.rank() < 2 { MPI_COMM_TYPE_SHARED } else { MPI_UNDEFINED };
        let (made, _) = world.split_type(process, mine, key, None, &placement).unwrap();
        let pair = if one_node { vec![1, 0] } else { vec![rank] };
        assert_eq!(made.map(|made| members(made.group())), (rank < 2).then_some(pair));
        let mut hints = Info::new();
        let sharing = Some(near.len() as i32);
        for (resource, size) in
            [(&b"mpi_shared_memory"[..], sharing), (b"hwloc://Machine", sharing), (b"no such thing", None)]
        {
            hints.set(b"mpi_hw_resource_type", resource).unwrap();
            let guided = MPI_COMM_TYPE_HW_GUIDED;
            let (made, _) = world.split_type(process, guided, 0, Some(&hints), &placement).unwrap();
            assert_eq!(made.map(|made| made.size()), size);
        }
        // All on one machine, and nothing smaller is known: no strict subset.
        let unguided = MPI_COMM_TYPE_HW_UNGUIDED;
        let machine = Placement::default();
        let (made, resource) = world.split_type(process, unguided, 0, None, &machine).unwrap();
        assert!(made.is_none() && resource.is_none());
        // One wants a subset by hardware, and the others nothing: the rows differ, the steps do not.
        let mine = if process.rank() == 2 { unguided } else { MPI_UNDEFINED };
        let (made, resource) = world.split_type(process, mine, 0, None, &placement).unwrap();
        assert_eq!(made.is_some(), process.rank() == 2);
        assert_eq!(resource, made.map(|_| "hwloc://Machine"));
        assert_eq!(world.split_type(process, 7, 0, None, &placement).unwrap_err().class(), MPI_ERR_ARG);
    });
}

#[test]
fn no_two_communicators_of_a_process_share_a_context() {
    let everywhere = Mutex::new(vec![Vec::new(); 5]);
    job(5, |process| {
        let mut alive = vec![process.world().clone(), process.self_communicator().clone()];
        let mut random = Random::new(11);
        for _ in 0..40 {
            let colors: Vec<i32> = (0..5).map(|_| random.below(3) as i32).collect();
            let parent = process.world();
            alive.extend(parent.split(process, colors[process.rank() as usize], 0).unwrap());
            // Only the members of the newest one go on with it, so that the counters of the leaders drift apart.
            let newest = alive.last().unwrap().clone();
            for _ in 0..random.below(3) {
                alive.push(newest.duplicate(process, 0, None).unwrap());
            }
            alive.push(process.self_communicator().duplicate(process, 0, None).unwrap());
        }
        let contexts: Vec<_> =
            alive.iter().map(|comm| (comm.context(Plane::PointToPoint), members(comm.group()))).collect();
        everywhere.lock().unwrap()[process.rank() as usize] = contexts;
    });
    let everywhere = everywhere.into_inner().unwrap();
    let mut known = std::collections::HashMap::new();
    for own in &everywhere {
        assert_eq!(own.iter().map(|(context, _)| context).collect::<HashSet<_>>().len(), own.len());
        for (context, group) in own {
            assert_eq!(known.entry(context).or_insert(group), &group, "one context, one group");
        }
    }
}

#[test]
fn contexts_that_are_given_back_serve_again_but_not_where_they_still_live() {
    job(2, |process| {
        let world = process.world();
        let first = world.duplicate(process, 0, None).unwrap();
        let context = first.context(Plane::PointToPoint);
        let ids = process.context_ids();
        // The leader gives the context back; process 1 keeps its communicator, as a pending receive would.
        let kept = (process.rank() == 1).then(|| first.clone());
        drop(first);
        let hoard: Vec<_> = if process.rank() == 0 {
            let mut hoard = Vec::new();
            while let Ok(allocated) = ids.allocate() {
                if allocated.second_hand {
                    ids.withdraw(allocated);
                    break;
                }
                hoard.push(allocated);
            }
            for allocated in hoard.drain(..2) {
                ids.leave(allocated.context);
            }
            hoard
        } else {
            Vec::new()
        };
        let second = world.duplicate(process, 0, None).unwrap();
        assert_ne!(second.context(Plane::PointToPoint), context, "still in use at process 1");
        talk(process, &second);
        drop(kept);
        let further: Vec<_> = (0..2).map(|_| world.duplicate(process, 0, None).unwrap()).collect();
        assert!(further.iter().any(|comm| comm.context(Plane::PointToPoint) == context));
        let split = world.split(process, 0, 0).unwrap_err();
        assert!(split.message().contains("as many communicators as it can"), "{split}");
        drop(hoard);
    });
}

#[test]
fn threads_make_communicators_at_the_same_time() {
    run(3, ThreadLevel::Multiple, |process| {
        let world = process.world();
        let bases: Vec<_> = (0..4).map(|_| world.duplicate(process, 0, None).unwrap()).collect();
        std::thread::scope(|scope| {
            for (thread, base) in (0..).zip(&bases) {
                scope.spawn(move || {
                    for round in 0..25 {
                        let twin = base.duplicate(process, 0, None).unwrap();
                        talk(process, &twin);
                        let part =
                            twin.split(process, (process.rank() as i32 + round) % 2, 0).unwrap().unwrap();
                        talk(process, &part);
                        // All threads on one communicator, told apart by their tags alone.
                        let group = world.group().include(&[2, 0]).unwrap();
                        if process.rank() != 1 {
                            let made =
                                world.create_group(process, &group, thread * 100 + round).unwrap().unwrap();
                            talk(process, &made);
                        }
                    }
                });
            }
        });
    });
}

#[test]
fn topologies_survive_duplication_and_gather_their_edges() {
    for size in SIZES {
        job(size, |process| {
            let world = process.world();
            let n = size as i32;
            let grid = Cartesian::new(vec![n, 1], vec![true, false]).unwrap();
            let made = world.create_grid(process, grid.clone()).unwrap().unwrap();
            let twin = made.duplicate(process, 0, None).unwrap();
            assert_eq!(twin.grid(), Ok(&grid));
            talk(process, &twin);
            let column = twin.cut_grid(process, &[true, false]).unwrap();
            assert_eq!((column.size(), column.grid().unwrap().extents()), (n, &[n][..]));
            assert!(world.grid().is_err());
            // Everybody names the edges of its successor: to all ranks below it, with their sum as weight.
            let named = (process.rank() as i32 + 1) % n;
            let edges: Vec<Edge> =
                (0..named).map(|low| Edge { source: named, destination: low, weight: named + low }).collect();
            let graph = world.create_distributed_graph(process, &edges, true).unwrap();
            let neighbors = graph.neighbors().unwrap();
            let here = process.rank() as i32;
            assert_eq!(neighbors.destinations, (0..here).map(|low| (low, here + low)).collect::<Vec<_>>());
            let mut sources = neighbors.sources.clone();
            sources.sort_unstable();
            assert_eq!(sources, (here + 1..n).map(|high| (high, here + high)).collect::<Vec<_>>());
        });
    }
}

#[test]
fn disconnecting_waits_for_the_freed_requests_of_the_communicator_only() {
    job(2, |process| {
        let world = process.world();
        let (one, other) =
            (world.duplicate(process, 0, None).unwrap(), world.duplicate(process, 0, None).unwrap());
        let places = [Scratch::new(4), Scratch::new(4)];
        let bytes = |place: &Scratch| UserBytes { address: place.address(), length: 4 };
        let peer = 1 - process.rank() as i32;
        for (comm, place) in [&one, &other].into_iter().zip(&places) {
            let receive =
                process.start_receive_bytes(comm, Plane::PointToPoint, peer, 0, bytes(place)).unwrap();
            Request::transfer(comm, receive).free(process).unwrap();
        }
        let number = Scratch::new(4);
        number.address().write(&[7; 4]);
        let send = |comm: &Communicator| {
            let mut send =
                process.start_send_bytes(comm, Plane::PointToPoint, peer, 0, bytes(&number)).unwrap();
            process.wait_until(send.awaited(), || send.poll(process)).unwrap();
        };
        send(&one);
        one.quiesce(process);
        let mut got = [0; 4];
        places[0].address().read(&mut got);
        assert_eq!(got, [7; 4]);
        // The receive on the other one is still pending, and did not matter.
        send(&other);
        other.quiesce(process);
    });
}
