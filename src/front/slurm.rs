//! `ergodic slurm`: a job script for a cluster.

use std::path::Path;

/// A script for SLURM that runs a grid, or a single run, as a job array; `arguments` are those of `ergodic run`.
pub fn script(
    name: &str,
    arguments: &[String],
    shards: usize,
    cores: usize,
    time: &str,
    out: &Path,
) -> String {
    let quoted = |a: &String| match a
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._/=,:+-".contains(c))
    {
        true => a.clone(),
        false => format!("'{}'", a.replace('\'', "'\\''")),
    };
    let command: Vec<_> = arguments.iter().map(quoted).collect();
    let out = quoted(&out.display().to_string());
    let command = format!("ergodic run {} --out {out}", command.join(" "));
    let is_grid = arguments
        .iter()
        .any(|a| a == "--grid" || a.starts_with("--grid="));
    let own = match is_grid {
        true => out,
        false => format!("{out}/shard-$SLURM_ARRAY_TASK_ID-of-{shards}"),
    };
    format!(
        r#"#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=1-{shards}
#SBATCH --cpus-per-task={cores}
#SBATCH --time={time}
#SBATCH --requeue
# Ten minutes before its end a job is told to save what it has. It is then queued again, and goes on.
#SBATCH --signal=B:INT@600

# sbatch this file; when all jobs have ended:
#   {command} --merge {shards}

RESUME=
[ "$SLURM_RESTART_COUNT" ] && [ "$(ls {own} 2>/dev/null)" ] && RESUME=--resume
{command} --shard "$SLURM_ARRAY_TASK_ID/{shards}" --threads "$SLURM_CPUS_PER_TASK" --quiet $RESUME &
RUN=$!
trap 'kill -INT $RUN' INT TERM
# A signal ends the waiting, and not the run, which saves first.
wait $RUN
CODE=$?
while kill -0 $RUN 2>/dev/null; do wait $RUN; CODE=$?; done
[ $CODE = 130 ] && scontrol requeue "$SLURM_JOB_ID"
exit $CODE"#
    )
}
