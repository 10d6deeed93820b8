//! Folders and their owners.

use super::super::claim::{Claim, LOCK, holds_something};
use super::Scratch;
use std::collections::HashSet;
use std::fs;

#[test]
fn a_folder_has_one_owner_at_a_time_and_nothing_is_left_of_one_that_wrote_nothing() {
    let scratch = Scratch::new("claim");
    let folder = scratch.join("a").join("b");
    let claim = Claim::of(&folder).unwrap();
    let message = format!("{:#}", Claim::of(&folder).unwrap_err());
    let id = std::process::id();
    assert!(
        message.contains(&format!("this process (id {id}) already uses")),
        "{message}"
    );
    assert!(message.contains(folder.to_str().unwrap()) && message.contains("--out"));
    assert!(!holds_something(&folder));
    drop(claim);
    assert!(scratch.names().is_empty());
    let claim = Claim::of(&folder).unwrap();
    fs::write(folder.join("result"), "").unwrap();
    drop(claim);
    assert!(holds_something(&folder) && !folder.join(LOCK).exists());
}

#[test]
fn the_lock_file_of_a_killed_process_means_nothing() {
    let scratch = Scratch::new("stale");
    // Whether or not there is a process of that id now.
    for id in [99_999_999, 1] {
        fs::write(scratch.join(LOCK), format!("{id} here\n")).unwrap();
        let claim = Claim::of(&scratch.0).unwrap();
        let said = fs::read_to_string(scratch.join(LOCK)).unwrap();
        assert!(
            said.starts_with(&format!("{} ", std::process::id())),
            "{said}"
        );
        drop(claim);
        assert!(scratch.names().is_empty());
    }
}

#[test]
fn what_a_stranger_put_in_the_place_of_a_removed_folder_stays() {
    let scratch = Scratch::new("removed");
    let folder = scratch.join("a");
    let claim = Claim::of(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let other = Claim::of(&folder).unwrap();
    drop(claim);
    assert!(folder.join(LOCK).exists() && Claim::of(&folder).is_err());
    drop(other);
}

#[test]
fn whoever_asks_at_once_for_a_free_folder_gets_one_of_its_own() {
    let scratch = Scratch::new("free");
    let name = |k: usize| scratch.join("runs").join(format!("x-{k}"));
    let claims: Vec<_> = std::thread::scope(|s| {
        let ask = || {
            (0..20)
                .map(|_| Claim::first_free(1, name))
                .collect::<Vec<_>>()
        };
        let all: Vec<_> = (0..4).map(|_| s.spawn(ask)).collect();
        all.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let folders: HashSet<_> = claims.iter().map(|(folder, _)| folder).collect();
    assert!(folders.len() == 80 && claims.iter().all(|(_, claim)| claim.is_some()));
    drop(claims);
    // Whoever made the folder above may have let go of it before the others.
    assert!(!holds_something(&scratch.join("runs")));
}
