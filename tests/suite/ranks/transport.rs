//! Ranks under a real launcher: this binary starts itself under `mpirun` and plays one of the [`CASES`] on every rank.
//!
//! Only with the feature `mpi`. Without `mpirun` the tests are skipped, unless ERGODIC_TEST_ALL is set.

use anyhow::{Context, Result, ensure};
use ergodic::ranks::{self, Communicator, SingleProcess};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The name of the case that the ranks play, in their environment.
const CASE: &str = "ERGODIC_RANKS_CASE";

/// No case takes longer, even on a busy machine; a job that hangs is ended by then.
const LIMIT: Duration = Duration::from_secs(60);

type Case = fn(&dyn Communicator) -> Result<()>;

const CASES: [(&str, Case); 10] = [
    ("numbers", numbers),
    ("bytes", bytes),
    ("places", places),
    ("decisions", decisions),
    ("closed", closed),
    ("barrier", barrier),
    ("error", error),
    ("agreed", agreed),
    ("killed", killed),
    ("panic", panic),
];

/// What one job has left behind.
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
    seconds: f64,
}

/// Play a case on that many ranks. `None` where there is no launcher.
fn play(case: &str, size: usize) -> Result<Option<Ended>> {
    let mut command = Command::new("mpirun");
    // No binding: with two ranks or fewer each of them, with all its threads, would get one core.
    command.args([
        "-n",
        &size.to_string(),
        "--oversubscribe",
        "--bind-to",
        "none",
    ]);
    command
        .arg(std::env::current_exe()?)
        .args([
            "--exact",
            "ranks::transport::member",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(CASE, case)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            ensure!(
                std::env::var_os("ERGODIC_TEST_ALL").is_none(),
                "there is no mpirun"
            );
            eprintln!("skipped: there is no mpirun");
            return Ok(None);
        }
        Err(e) => return Err(e).context("mpirun"),
    };
    // Read while it runs: a full pipe would stop it.
    let out = drain(child.stdout.take());
    let err = drain(child.stderr.take());
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if begin.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let seconds = begin.elapsed().as_secs_f64();
    let out = out.join().unwrap_or_default();
    let err = err.join().unwrap_or_default();
    let status = status.with_context(|| format!("{case} on {size} ranks hangs: {out}{err}"))?;
    Ok(Some(Ended {
        code: status.code(),
        out,
        err,
        seconds,
    }))
}

fn drain<R: Read + Send + 'static>(pipe: Option<R>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Play a case that has to end well, on 1, 2 and 4 ranks.
fn succeeds(case: &str) -> Result<()> {
    for size in [1, 2, 4] {
        let Some(ended) = play(case, size)? else {
            return Ok(());
        };
        let said = format!("{case} on {size} ranks: {}{}", ended.out, ended.err);
        ensure!(ended.code == Some(0), "{said}");
        let played = ended.out.matches(&format!("{case} played")).count();
        ensure!(played == size, "{played} have played; {said}");
    }
    Ok(())
}

/// The part of one rank; started by [`play`] only.
#[test]
#[ignore = "runs under mpirun, started by the other tests"]
fn member() -> Result<()> {
    let Ok(name) = std::env::var(CASE) else {
        return Ok(());
    };
    let (_, case) = CASES
        .iter()
        .find(|(known, _)| *known == name)
        .with_context(|| format!("no case {name}"))?;
    let ranks = ranks::open()?;
    if let Err(e) = case(ranks.as_ref()) {
        // What the command line does with an error: the message first, then the end of all.
        complain(ranks.as_ref(), &e)?;
        ranks.abort(9);
    }
    println!("{name} played");
    if name != "closed" {
        ranks.finish()?;
    }
    Ok(())
}

/// Say what went wrong. In one piece: the launcher mixes what ranks write, piece by piece, and `eprintln!` writes several.
fn complain(ranks: &dyn Communicator, error: &anyhow::Error) -> Result<()> {
    let message = format!("error: rank {}: {error:#}\n", ranks.rank());
    Ok(std::io::stderr().write_all(message.as_bytes())?)
}

/// Numbers whose bits differ from rank to rank, among them what arithmetic would not keep.
fn sample(rank: usize, n: usize) -> Vec<f64> {
    let special = [
        f64::from_bits(0x7FF0_0000_DEAD_BEEF),
        f64::from_bits(0xFFF8_0000_0000_0001),
        f64::NEG_INFINITY,
        -0.0,
        5e-324,
    ];
    (0..n)
        .map(|i| match special.get(i) {
            Some(&x) if rank % 2 == 1 => x,
            _ => f64::from_bits((rank as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i as u64),
        })
        .collect()
}

fn numbers(ranks: &dyn Communicator) -> Result<()> {
    let lengths: [fn(usize) -> usize; 7] = [
        |_| 0,
        |_| 1,
        |_| 64,
        |rank| 7 * rank,
        |rank| if rank == 1 { 0 } else { 5 },
        |rank| if rank == 0 { 0 } else { 3 + rank },
        |rank| 100_000 + rank,
    ];
    for length in lengths {
        let all = ranks.all_gather(&sample(ranks.rank(), length(ranks.rank())))?;
        ensure!(all.len() == ranks.size());
        for (rank, got) in all.iter().enumerate() {
            let expected = sample(rank, length(rank));
            ensure!(
                got.len() == expected.len(),
                "length {} of {rank}",
                got.len()
            );
            let same = got
                .iter()
                .zip(&expected)
                .all(|(a, b)| a.to_bits() == b.to_bits());
            ensure!(same, "other bits from rank {rank}");
        }
    }
    Ok(())
}

fn bytes(ranks: &dyn Communicator) -> Result<()> {
    let fill = |rank: usize, n: usize| {
        (0..n)
            .map(|i| (i * 31 + rank * 7) as u8)
            .collect::<Vec<_>>()
    };
    // The last ones are sent in several pieces, with a rest, and without one.
    let lengths: [fn(usize) -> usize; 6] = [
        |_| 0,
        |rank| rank,
        |rank| if rank == 0 { 0 } else { 1000 },
        |rank| if rank == 0 { 1000 } else { 0 },
        |rank| 20_000_003 + rank,
        |_| 1 << 24,
    ];
    let last = ranks.size() - 1;
    for root in 0..ranks.size() {
        // The large ones once; they take time.
        let lengths = if root == last {
            &lengths[..]
        } else {
            &lengths[..4]
        };
        for length in lengths {
            let mine = fill(ranks.rank(), length(ranks.rank()));
            let all = ranks.gather_bytes(&mine, root)?;
            ensure!(all.is_some() == (ranks.rank() == root));
            for (rank, got) in all.iter().flatten().enumerate() {
                ensure!(*got == fill(rank, length(rank)), "gathered from {rank}");
            }
            let mut shared = mine;
            ranks.broadcast_bytes(&mut shared, root)?;
            ensure!(shared == fill(root, length(root)), "broadcast from {root}");
        }
    }
    // An error everywhere, and all go on.
    ensure!(ranks.gather_bytes(b"a", ranks.size()).is_err());
    ensure!(
        ranks
            .broadcast_bytes(&mut Vec::new(), ranks.size())
            .is_err()
    );
    ranks.barrier()
}

fn places(ranks: &dyn Communicator) -> Result<()> {
    ensure!(ranks.rank() < ranks.size());
    // All on one machine here.
    ensure!(ranks.local_rank() == ranks.rank() && ranks.local_size() == ranks.size());
    let all = ranks.all_gather(&[ranks.rank() as f64])?;
    ensure!(all.iter().enumerate().all(|(i, x)| *x == [i as f64]));
    // From another thread, too.
    std::thread::scope(|scope| scope.spawn(|| ranks.barrier()).join())
        .map_err(|_| anyhow::anyhow!("the thread has panicked"))?
}

fn decisions(ranks: &dyn Communicator) -> Result<()> {
    let last = ranks.size() - 1;
    ensure!(ranks::any(ranks, ranks.rank() == last)?);
    ensure!(!ranks::any(ranks, false)?);
    ensure!(ranks::agree(ranks, Ok(ranks.rank()))? == ranks.rank());
    let mine = match ranks.rank() == last {
        true => Err(anyhow::anyhow!("the disk is full")),
        false => Ok(()),
    };
    let all = ranks::agree(ranks, mine);
    let message = all.err().map(|e| e.to_string()).unwrap_or_default();
    let expected = match ranks.rank() == last {
        true => "the disk is full".to_string(),
        false => format!("rank {last} has failed"),
    };
    ensure!(message.contains(&expected), "{message}");
    Ok(())
}

fn closed(ranks: &dyn Communicator) -> Result<()> {
    ranks.finish()?;
    if ranks.size() > 1 || std::env::var_os("OMPI_COMM_WORLD_SIZE").is_some() {
        ensure!(ranks.all_gather(&[1.0]).is_err());
        ensure!(ranks.gather_bytes(&[1], 0).is_err());
        ensure!(ranks.broadcast_bytes(&mut vec![1], 0).is_err());
        ensure!(ranks.barrier().is_err());
        ensure!(ranks.finish().is_err());
    }
    Ok(())
}

fn barrier(ranks: &dyn Communicator) -> Result<()> {
    ranks.barrier()?;
    let begin = Instant::now();
    if ranks.rank() == ranks.size() - 1 {
        std::thread::sleep(Duration::from_millis(300));
    }
    ranks.barrier()?;
    let waited = begin.elapsed().as_secs_f64();
    ensure!(waited > 0.25, "nobody has waited: {waited} s");
    Ok(())
}

fn error(ranks: &dyn Communicator) -> Result<()> {
    ensure!(ranks.rank() != 1, "the second rank has no luck");
    ranks.barrier()
}

fn agreed(ranks: &dyn Communicator) -> Result<()> {
    // All fail at the same place: they can leave in order, and rank 0 alone speaks.
    let mine = match ranks.rank() {
        1 => Err(anyhow::anyhow!("the second rank has no luck")),
        _ => Ok(()),
    };
    if let Err(e) = ranks::agree(ranks, mine) {
        if ranks.rank() < 2 {
            complain(ranks, &e)?;
        }
        ranks.finish()?;
        std::process::exit(4);
    }
    Ok(())
}

fn killed(ranks: &dyn Communicator) -> Result<()> {
    if ranks.rank() == 1 {
        let me = std::process::id().to_string();
        Command::new("kill").args(["-KILL", &me]).status()?;
    }
    ranks.barrier()
}

fn panic(ranks: &dyn Communicator) -> Result<()> {
    ensure_not_second(ranks.rank());
    ranks.barrier()
}

fn ensure_not_second(rank: usize) {
    assert_ne!(rank, 1, "the second rank panics");
}

#[test]
fn numbers_arrive_with_every_bit() -> Result<()> {
    succeeds("numbers")
}

#[test]
fn bytes_arrive_in_pieces() -> Result<()> {
    succeeds("bytes")
}

#[test]
fn ranks_know_their_places() -> Result<()> {
    succeeds("places")
}

#[test]
fn ranks_decide_together() -> Result<()> {
    succeeds("decisions")
}

#[test]
fn nothing_works_after_the_end() -> Result<()> {
    succeeds("closed")
}

#[test]
fn a_barrier_waits_for_the_last() -> Result<()> {
    // SingleProcess there is nobody to wait for, but the one that sleeps waits for itself.
    succeeds("barrier")
}

#[test]
fn an_error_ends_the_job() -> Result<()> {
    for size in [2, 4] {
        let Some(ended) = play("error", size)? else {
            return Ok(());
        };
        let said = format!("{}{}", ended.out, ended.err);
        assert_eq!(ended.code, Some(9), "{said}");
        assert!(
            said.contains("rank 1: the second rank has no luck"),
            "{said}"
        );
        assert!(!said.contains("error played"), "{said}");
    }
    Ok(())
}

#[test]
fn an_agreed_error_ends_the_job_in_order() -> Result<()> {
    for size in [2, 4] {
        let Some(ended) = play("agreed", size)? else {
            return Ok(());
        };
        let said = format!("{}{}", ended.out, ended.err);
        assert_eq!(ended.code, Some(4), "{said}");
        assert!(said.contains("rank 0: rank 1 has failed"), "{said}");
        assert!(
            said.contains("rank 1: the second rank has no luck"),
            "{said}"
        );
        assert!(!said.contains("MPI_ABORT"), "{said}");
    }
    Ok(())
}

#[test]
#[ignore = "long: tests/run"]
fn a_killed_rank_ends_the_job() -> Result<()> {
    for size in [2, 4] {
        let Some(ended) = play("killed", size)? else {
            return Ok(());
        };
        // 128 + 9. The others get a second from Open MPI.
        assert_eq!(ended.code, Some(137), "{}{}", ended.out, ended.err);
        assert!(ended.seconds < 20.0, "took {} s", ended.seconds);
    }
    Ok(())
}

#[test]
fn a_panic_ends_the_job() -> Result<()> {
    for size in [2, 4] {
        let Some(ended) = play("panic", size)? else {
            return Ok(());
        };
        let said = format!("{}{}", ended.out, ended.err);
        assert_eq!(ended.code, Some(1), "{said}");
        assert!(said.contains("the second rank panics"), "{said}");
    }
    Ok(())
}

#[test]
fn without_a_launcher_one_is_alone() -> Result<()> {
    // The suite itself may run under a launcher; then there is nothing to see.
    if std::env::var_os("OMPI_COMM_WORLD_SIZE").is_none() {
        let ranks = ranks::open()?;
        assert_eq!(ranks.size(), SingleProcess.size());
    }
    Ok(())
}
