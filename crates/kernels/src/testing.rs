//! What tests of devices share with those of the program: the emulated device, and NVIDIA's compiler.

#![allow(dead_code)]

#[path = "../../../tests/suite/emulated.rs"]
pub mod emulated;
#[path = "../../../tests/suite/device/nvrtc.rs"]
pub mod nvrtc;

/// Kernels that tests of the program add.
const TRIALS: &str = "";

/// What those tests do where something is missing.
pub mod bench {
    /// A test must not pass by finding nothing to test, where the whole suite is asked for.
    pub fn skip(what: &str) {
        let all = std::env::var("ERGODIC_TEST_ALL").is_ok_and(|v| v == "1");
        assert!(!all, "ERGODIC_TEST_ALL=1, but {what}");
        println!("SKIP: {what}");
    }
}
