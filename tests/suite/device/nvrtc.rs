//! NVIDIA's compiler takes the kernels; it needs no GPU.

use super::TRIALS;
use super::bench::skip;
use ergodic::kernels::device::STATIC;
use libloading::Library;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::Mutex;

/// nvrtc, and the part of it that it would not find itself outside of the system's folders.
fn nvrtc() -> Option<Vec<Library>> {
    let mut folders = vec![PathBuf::new()];
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(home) = std::env::var_os(variable) {
            folders.extend(["lib", "lib64"].map(|lib| PathBuf::from(&home).join(lib)));
        }
    }
    // SAFETY: loading NVIDIA's libraries runs nothing but their own initialisers.
    let load = |path: PathBuf| unsafe { Library::new(path) }.ok();
    for folder in folders.iter().rev() {
        for name in ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"] {
            if let Some(library) = load(folder.join(name)) {
                let files = folder.read_dir().into_iter().flatten().flatten();
                let builtins = files
                    .map(|f| f.path())
                    .filter(|p| p.to_string_lossy().contains("libnvrtc-builtins.so"));
                let builtins: Vec<_> = builtins.filter_map(load).collect();
                return Some(std::iter::once(library).chain(builtins).collect());
            }
        }
    }
    None
}

/// Compile for an architecture; the compiler's log if it refuses or warns.
fn compile(nvrtc: &Library, source: &str, architecture: &str) -> Result<(), String> {
    type Program = *mut c_void;
    type Create = unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int;
    type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
    type LogSize = unsafe extern "C" fn(Program, *mut usize) -> c_int;
    type Log = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
    type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
    let source = CString::new(source).unwrap();
    let options = [
        "--fmad=false".to_string(),
        format!("--gpu-architecture={architecture}"),
    ];
    let options = options.map(|o| CString::new(o).unwrap());
    let options = options.each_ref().map(|o| o.as_ptr());
    // SAFETY: the types are those of nvrtc.h, and every pointer lives until the program is destroyed.
    unsafe {
        let mut program = null_mut();
        let create = nvrtc.get::<Create>("nvrtcCreateProgram").unwrap();
        let done = create(
            &mut program,
            source.as_ptr(),
            c"kernels.cu".as_ptr(),
            0,
            null(),
            null(),
        );
        assert_eq!(done, 0, "nvrtcCreateProgram");
        let compile = nvrtc.get::<Compile>("nvrtcCompileProgram").unwrap();
        let status = compile(program, options.len() as c_int, options.as_ptr());
        let mut size = 0;
        nvrtc.get::<LogSize>("nvrtcGetProgramLogSize").unwrap()(program, &mut size);
        let mut log = vec![0; size + 1];
        nvrtc.get::<Log>("nvrtcGetProgramLog").unwrap()(program, log.as_mut_ptr());
        nvrtc.get::<Destroy>("nvrtcDestroyProgram").unwrap()(&mut program);
        let log = CStr::from_ptr(log.as_ptr())
            .to_string_lossy()
            .trim()
            .to_string();
        if status == 0 && log.is_empty() {
            Ok(())
        } else {
            Err(log)
        }
    }
}

/// Panics if one of these sources does not compile for GPUs of the last generations.
pub fn compile_all(sources: &[String]) {
    let Some(libraries) = nvrtc() else {
        return skip(
            "nvrtc not found (libnvrtc.so.13, .12 or .so in CUDA_HOME/lib or the system's folders)",
        );
    };
    // What a sampler needs is the same for every target.
    static COMPILED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let known = |source: &String| COMPILED.lock().unwrap().contains(source);
    for source in sources.iter().filter(|s| !known(s)) {
        for architecture in ["sm_80", "sm_90"] {
            if let Err(log) = compile(&libraries[0], source, architecture) {
                panic!("{architecture}: {log}");
            }
        }
        COMPILED.lock().unwrap().insert(source.clone());
    }
    let broken = "extern \"C\" __global__ void broken() { undeclared = 1; }";
    assert!(compile(&libraries[0], broken, "sm_80").is_err());
}

#[test]
fn every_kernel_compiles_under_nvrtc() {
    compile_all(&[format!("{STATIC}{TRIALS}")]);
}
