//! Categories (MPI 5.0, section 15.3.9): one above all, those of the counters and events, and one of the tunables with
//! one for each part of the library that reads some.

use crate::tool::{self, Outcome, Place};
use parnass_counters::{CATEGORIES, COUNTERS, EVENTS};
use parnass_mpi::constants::*;
use parnass_tunables::TABLE;
use std::ffi::{c_char, c_int};

/// A group of variables, events and groups, by their indices.
#[derive(Debug, Default)]
struct Group {
    name: String,
    what: String,
    controls: Vec<c_int>,
    variables: Vec<c_int>,
    events: Vec<c_int>,
    groups: Vec<c_int>,
}

fn positions(total: usize, wanted: impl Fn(usize) -> bool) -> Vec<c_int> {
    (0..total).filter(|position| wanted(*position)).map(|position| position as c_int).collect()
}

/// All of them.
fn all() -> Vec<Group> {
    let mut rooms: Vec<&str> = Vec::new();
    for tunable in TABLE {
        if !rooms.contains(&tunable.room) {
            rooms.push(tunable.room);
        }
    }
    let tunables = 1 + CATEGORIES.len();
    let mut groups = vec![Group {
        name: "parnass".to_owned(),
        what: "Everything.".to_owned(),
        groups: (1..=tunables as c_int).collect(),
        ..Group::default()
    }];
    groups.extend(CATEGORIES.iter().enumerate().map(|(place, category)| Group {
        name: category.name.to_owned(),
        what: category.what.to_owned(),
        variables: positions(COUNTERS.len(), |row| COUNTERS[row].category == place),
        events: positions(EVENTS.len(), |row| EVENTS[row].category == place),
        ..Group::default()
    }));
    groups.push(Group {
        name: "tunables".to_owned(),
        what: "Values that can be chosen.".to_owned(),
        groups: (0..rooms.len()).map(|room| (tunables + 1 + room) as c_int).collect(),
        ..Group::default()
    });
    groups.extend(rooms.iter().map(|room| Group {
        name: format!("tunables_{}", room.replace('-', "_")),
        what: format!("Those that the part {room} of the library reads."),
        controls: positions(TABLE.len(), |row| TABLE[row].room == *room),
        ..Group::default()
    }));
    groups
}

fn find(index: c_int) -> Result<Group, c_int> {
    let mut groups = all();
    let row = super::row(&groups, index)?;
    Ok(groups.swap_remove(row))
}

/// MPI_T_category_get_num.
pub fn category_get_num(num_cat: Place<c_int>) -> Outcome {
    tool::check()?;
    num_cat.required()?.set(all().len() as c_int);
    Ok(())
}

/// MPI_T_category_get_info.
pub fn category_get_info(
    cat_index: c_int,
    name: Place<c_char>,
    name_len: Place<c_int>,
    desc: Place<c_char>,
    desc_len: Place<c_int>,
    num_cvars: Place<c_int>,
    num_pvars: Place<c_int>,
    num_categories: Place<c_int>,
) -> Outcome {
    tool::check()?;
    let group = find(cat_index)?;
    name.give(name_len, &group.name);
    desc.give(desc_len, &group.what);
    num_cvars.set(group.controls.len() as c_int);
    num_pvars.set(group.variables.len() as c_int);
    num_categories.set(group.groups.len() as c_int);
    Ok(())
}

/// MPI_T_category_get_num_events.
pub fn category_get_num_events(cat_index: c_int, num_events: Place<c_int>) -> Outcome {
    tool::check()?;
    let group = find(cat_index)?;
    num_events.required()?.set(group.events.len() as c_int);
    Ok(())
}

/// MPI_T_category_get_index.
pub fn category_get_index(name: Place<c_char>, cat_index: Place<c_int>) -> Outcome {
    tool::check()?;
    let cat_index = cat_index.required()?;
    let groups = all();
    cat_index.set(super::named(groups.iter().map(|group| group.name.as_str()), &name.text()?)?);
    Ok(())
}

/// Hands out members of a category.
fn members(
    cat_index: c_int,
    len: c_int,
    indices: Place<c_int>,
    which: impl Fn(Group) -> Vec<c_int>,
) -> Outcome {
    tool::check()?;
    let members = which(find(cat_index)?);
    let room = usize::try_from(len).map_err(|_| MPI_T_ERR_INVALID)?;
    if room > 0 && !members.is_empty() {
        indices.required()?;
    }
    for (place, member) in members.into_iter().take(room).enumerate() {
        indices.at(place).set(member);
    }
    Ok(())
}

/// MPI_T_category_get_cvars.
pub fn category_get_cvars(cat_index: c_int, len: c_int, indices: Place<c_int>) -> Outcome {
    members(cat_index, len, indices, |group| group.controls)
}

/// MPI_T_category_get_pvars.
pub fn category_get_pvars(cat_index: c_int, len: c_int, indices: Place<c_int>) -> Outcome {
    members(cat_index, len, indices, |group| group.variables)
}

/// MPI_T_category_get_events.
pub fn category_get_events(cat_index: c_int, len: c_int, indices: Place<c_int>) -> Outcome {
    members(cat_index, len, indices, |group| group.events)
}

/// MPI_T_category_get_categories.
pub fn category_get_categories(cat_index: c_int, len: c_int, indices: Place<c_int>) -> Outcome {
    members(cat_index, len, indices, |group| group.groups)
}

/// MPI_T_category_changed: nothing is ever added.
pub fn category_changed(update_number: Place<c_int>) -> Outcome {
    tool::check()?;
    update_number.required()?.set(1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_in_one_place_of_the_tree() {
        let groups = all();
        let count = |members: fn(&Group) -> &Vec<c_int>| -> Vec<c_int> {
            let mut found: Vec<c_int> = groups.iter().flat_map(members).copied().collect();
            found.sort_unstable();
            found
        };
        let range = |from: usize, to: usize| (from as c_int..to as c_int).collect::<Vec<_>>();
        assert_eq!(count(|group| &group.controls), range(0, TABLE.len()));
        assert_eq!(count(|group| &group.variables), range(0, COUNTERS.len()));
        assert_eq!(count(|group| &group.events), range(0, EVENTS.len()));
        assert_eq!(count(|group| &group.groups), range(1, groups.len()));
        let later =
            |(index, group): (usize, &Group)| group.groups.iter().all(|below| *below as usize > index);
        assert!(groups.iter().enumerate().all(later), "a group contains itself");
    }
}
