//! Splitting communicators by colour, and by what hardware the processes share (MPI 5.0, section 7.4.2).

use super::create::{Offer, SECOND_HAND, agree};
use super::exchange::{Channel, decode, encode, run};
use super::{Communicator, Role};
use crate::constants::*;
use crate::environment::Placement;
use crate::group::Group;
use crate::info::Info;
use crate::process::Process;
use crate::{Error, Result};
use parnass_portals::ProcessId;
use std::sync::Arc;

/// What one process says in a split.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    process: ProcessId,
    /// `None`: gets no communicator.
    color: Option<i32>,
    key: i32,
    /// The context that it offers, for when it becomes the leader.
    offer: u32,
}

/// The members of one colour, in the order of their keys and, for equal keys, of their old ranks. The first leads.
fn members(rows: &[Row], color: i32) -> Vec<&Row> {
    let mut members: Vec<&Row> = rows.iter().filter(|row| row.color == Some(color)).collect();
    members.sort_by_key(|row| row.key);
    members
}

fn group_of(members: &[&Row]) -> Group {
    Group::from_processes(members.iter().map(|row| row.process).collect())
}

const ROW_WORDS: usize = 3;

fn encode_row(color: Option<i32>, key: i32, offer: u32) -> Vec<u8> {
    encode(&[color.unwrap_or(MPI_UNDEFINED) as u32, key as u32, offer])
}

fn decode_rows(bytes: &[u8], group: &Group) -> Vec<Row> {
    let words = decode(bytes);
    let rows = words.chunks_exact(ROW_WORDS).zip(group.processes());
    rows.map(|(row, process)| Row {
        process,
        color: (row[0] as i32 != MPI_UNDEFINED).then_some(row[0] as i32),
        key: row[1] as i32,
        offer: row[2],
    })
    .collect()
}

impl Channel {
    /// The communicator of these members, this process among them, with the context that the first one offers.
    async fn split_off(
        &self,
        parent: &Communicator,
        members: &[&Row],
        offer: &mut Offer,
    ) -> Result<Arc<Communicator>> {
        let group = group_of(members);
        let told = members[0].offer;
        let mixed = self.process().context_ids().is_mixed(&group);
        let context = match told & SECOND_HAND {
            0 if !mixed => offer.settle(told)?,
            _ => agree(&self.among(group.clone())).await?,
        };
        let made = parent.child(self.process(), group, Role::Ordinary);
        let made = Arc::new(made);
        made.set_context(context);
        Ok(made)
    }
}

impl Communicator {
    /// MPI_Comm_split. `color` is not negative, or MPI_UNDEFINED for a process that wants no communicator.
    pub fn split(
        self: &Arc<Self>,
        process: &Arc<Process>,
        color: i32,
        key: i32,
    ) -> Result<Option<Arc<Communicator>>> {
        if color < 0 && color != MPI_UNDEFINED {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!("color is {color}; it must be 0 or more, or MPI_UNDEFINED for no communicator"),
            ));
        }
        self.split_checked(process, (color != MPI_UNDEFINED).then_some(color), key)
    }

    fn split_checked(
        self: &Arc<Self>,
        process: &Arc<Process>,
        color: Option<i32>,
        key: i32,
    ) -> Result<Option<Arc<Communicator>>> {
        if self.is_inter() {
            return self.split_inter(process, color, key);
        }
        let channel = Channel::all(process, self);
        let parent = self.clone();
        run(process, self, async move {
            let process = channel.process();
            let mut offer = if color.is_some() { Offer::new(process) } else { Offer::none(process) };
            let rows = channel.allgather(&encode_row(color, key, offer.to_wire())).await?;
            let Some(color) = color else { return Ok(None) };
            let rows = decode_rows(&rows, parent.group());
            let members = members(&rows, color);
            Ok(Some(channel.split_off(&parent, &members, &mut offer).await?))
        })
    }

    /// Both sides of a new intercommunicator have the same colour; a colour that only one side has gives nothing.
    fn split_inter(
        self: &Arc<Self>,
        process: &Arc<Process>,
        color: Option<i32>,
        key: i32,
    ) -> Result<Option<Arc<Communicator>>> {
        let local = self.local_communicator().ok_or_else(|| self.not_inter())?;
        let bridge = self.bridge_of_leader(process);
        let inside = Channel::all(process, local);
        let tags = [self.next_collective_tag(), local.next_collective_tag()];
        let parent = self.clone();
        run(process, self, async move {
            let own = inside.allgather(&encode_row(color, key, 0)).await?;
            let mut others = vec![0; 4 * ROW_WORDS * parent.remote_size() as usize];
            if let Some(bridge) = &bridge {
                others = bridge.swap(0, &own, others.len()).await?;
            }
            let others = inside.broadcast(0, others).await?;
            let Some(color) = color else { return Ok(None) };
            let own = decode_rows(&own, parent.group());
            let others = decode_rows(&others, parent.peers());
            let (own, others) = (group_of(&members(&own, color)), group_of(&members(&others, color)));
            parent.connect_subsets(inside.process(), own, others, tags).await
        })
    }

    /// MPI_Comm_split_type. With MPI_COMM_TYPE_HW_UNGUIDED the resource that was split by is told in the second
    /// result, for the info key `mpi_hw_resource_type`.
    pub fn split_type(
        self: &Arc<Self>,
        process: &Arc<Process>,
        split_type: i32,
        key: i32,
        hints: Option<&Info>,
        placement: &Placement,
    ) -> Result<(Option<Arc<Communicator>>, Option<&'static str>)> {
        let resource = hints.and_then(|hints| hints.value(RESOURCE_KEY));
        let mut instances = [NO_INSTANCE; KINDS];
        let node = self.node_of(process);
        let color = match split_type {
            MPI_UNDEFINED => None,
            MPI_COMM_TYPE_SHARED => Some(0),
            MPI_COMM_TYPE_HW_GUIDED | MPI_COMM_TYPE_RESOURCE_GUIDED => match resource {
                Some(b"mpi_shared_memory") => Some(0),
                Some(resource) => placement.instance(resource),
                None => None,
            },
            MPI_COMM_TYPE_HW_UNGUIDED => {
                let known = Placement::KINDS.iter().map(|kind| placement.instance(kind.as_bytes()));
                for (place, instance) in instances.iter_mut().zip(known) {
                    *place = instance.map_or(NO_INSTANCE, |instance| instance as u32);
                }
                None
            }
            _ => {
                return Err(Error::new(
                    MPI_ERR_ARG,
                    format!(
                        "split_type is {split_type}; it must be MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_GUIDED, \
                         MPI_COMM_TYPE_HW_UNGUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED, or MPI_UNDEFINED for no communicator"
                    ),
                ));
            }
        };
        if self.is_inter() {
            // The sides of an intercommunicator would have to agree on the kind of resource: none is chosen.
            let color = color.map(|color| color_on_node(node, color));
            return Ok((self.split_inter(process, color, key)?, None));
        }
        self.split_by_resource(process, color, key, node, instances)
    }

    /// Splits those with a colour by it and their node, and those without by the largest kind of resource that tells some of
    /// them from others. One step for both, since the processes of one call may want different things.
    fn split_by_resource(
        self: &Arc<Self>,
        process: &Arc<Process>,
        color: Option<i32>,
        key: i32,
        node: u32,
        instances: [u32; KINDS],
    ) -> Result<(Option<Arc<Communicator>>, Option<&'static str>)> {
        let channel = Channel::all(process, self);
        let parent = self.clone();
        run(process, self, async move {
            let process = channel.process();
            let wants = color.is_some() || instances != [NO_INSTANCE; KINDS];
            let mut offer = if wants { Offer::new(process) } else { Offer::none(process) };
            let mut own = encode_row(color, key, offer.to_wire());
            own.extend(encode(&[node]));
            own.extend(encode(&instances));
            let gathered = channel.allgather(&own).await?;
            let (mut rows, mut nodes, mut table) = (Vec::new(), Vec::new(), Vec::new());
            for bytes in gathered.chunks_exact(own.len()) {
                let (row, instances) = bytes.split_at(4 * ROW_WORDS);
                rows.extend_from_slice(row);
                let (node, instances) = (decode(instances)[0], &decode(instances)[1..]);
                nodes.push(node);
                // Every node counts its resources from 0.
                let known = |instance: &u32| (*instance != NO_INSTANCE).then_some((node, *instance));
                table.push(instances.iter().map(known).collect::<Vec<_>>());
            }
            let mut rows = decode_rows(&rows, parent.group());
            let chosen = partition(&table);
            let groups: Vec<_> = rows
                .iter()
                .zip(&nodes)
                .zip(&chosen)
                .map(|((row, &node), chosen)| {
                    let given = row.color.map(|color| (None, (node, color as u32)));
                    given.or(chosen.map(|(kind, instance)| (Some(kind), instance)))
                })
                .collect();
            for (row, group) in rows.iter_mut().zip(&groups) {
                // Named by the first that is in it.
                row.color = group
                    .and_then(|_| groups.iter().position(|first| first == group).map(|first| first as i32));
            }
            let rank = channel.rank() as usize;
            let Some(color) = rows[rank].color else { return Ok((None, None)) };
            let members = members(&rows, color);
            let made = channel.split_off(&parent, &members, &mut offer).await?;
            Ok((Some(made), chosen[rank].map(|(kind, _)| Placement::KINDS[kind])))
        })
    }
}

const KINDS: usize = Placement::KINDS.len();

impl Communicator {
    /// What names the node of this process: the first process of its world that shares memory with it. Worlds share none.
    fn node_of(&self, process: &Process) -> u32 {
        let first = (0..process.size()).find(|other| process.nic().shares_memory(ProcessId(*other)));
        let first = first.unwrap_or(u32::MAX);
        if !self.is_mixed() {
            return first;
        }
        super::create::hash(&[process.world_name().as_slice(), &first.to_le_bytes()].concat())
    }
}

/// One number for both, where only a number can be told.
fn color_on_node(node: u32, color: i32) -> i32 {
    (super::create::hash(&[node.to_le_bytes(), color.to_le_bytes()].concat()) >> 1) as i32
}

/// Stands for the instance of a resource where there is none, or where the process does not ask to be split by it.
const NO_INSTANCE: u32 = u32::MAX;

const RESOURCE_KEY: &[u8] = b"mpi_hw_resource_type";

/// For each process the kind and instance of the resource that it is grouped by: from the largest kind to the
/// smallest, processes that share an instance are grouped if they are not all. `rows`: for each process its instance
/// of each kind, if it is confined to one.
fn partition<T: Copy + PartialEq>(rows: &[Vec<Option<T>>]) -> Vec<Option<(usize, T)>> {
    let mut chosen = vec![None; rows.len()];
    let kinds = rows.first().map_or(0, Vec::len);
    for kind in 0..kinds {
        for process in 0..rows.len() {
            let Some(instance) = rows[process][kind].filter(|_| chosen[process].is_none()) else { continue };
            let sharing: Vec<usize> =
                (0..rows.len()).filter(|&other| rows[other][kind] == Some(instance)).collect();
            if sharing.len() < rows.len() {
                for other in sharing {
                    chosen[other].get_or_insert((kind, instance));
                }
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(process: u32, color: Option<i32>, key: i32) -> Row {
        Row { process: ProcessId(process), color, key, offer: 0 }
    }

    #[test]
    fn members_are_ordered_by_key_then_by_old_rank() {
        let rows = [
            row(4, Some(1), 5),
            row(2, Some(1), -1),
            row(3, Some(2), 0),
            row(1, Some(1), 5),
            row(0, None, 0),
        ];
        let group = group_of(&members(&rows, 1));
        assert_eq!(group.processes().map(|process| process.0).collect::<Vec<_>>(), [2, 4, 1]);
    }

    #[test]
    fn rows_survive_the_wire() {
        let group = Group::world(2);
        let bytes = [encode_row(Some(7), -3, 44), encode_row(None, i32::MIN, u32::MAX - 1)].concat();
        let expected = [
            Row { process: ProcessId(0), color: Some(7), key: -3, offer: 44 },
            Row { process: ProcessId(1), color: None, key: i32::MIN, offer: u32::MAX - 1 },
        ];
        assert_eq!(decode_rows(&bytes, &group), expected);
    }

    #[test]
    fn the_largest_resource_that_tells_processes_apart_is_taken() {
        let one_package = [[0, 0, 3], [0, 0, 4], [0, 1, 5]].map(|row| row.map(Some).to_vec());
        assert_eq!(partition(&one_package), [Some((1, 0)), Some((1, 0)), Some((1, 1))]);
        assert_eq!(partition(&[vec![Some(0), Some(0)], vec![Some(0), Some(0)]]), [None, None]);
        assert_eq!(partition::<u32>(&[vec![None, None]]), [None]);
        let two_hosts =
            [[(0, 0), (0, 0)], [(0, 0), (0, 1)], [(2, 0), (2, 0)]].map(|row| row.map(Some).to_vec());
        assert_eq!(partition(&two_hosts), [Some((0, (0, 0))), Some((0, (0, 0))), Some((0, (2, 0)))]);
    }
}
