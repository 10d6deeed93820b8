//! Answers what arrives on the control channel, also while a cell runs.

use super::super::state::{Core, Work};
use super::common;
use std::sync::mpsc::Receiver;

/// Answer requests until the kernel stops.
pub fn serve(core: &Core, queue: &Receiver<Work>) {
    while let Ok(Work::Request(request)) = queue.recv() {
        core.busy_with(&request, || common::answer(core, &request));
        if request.message.kind() == "shutdown_request" {
            core.handle.stop();
        }
    }
}
