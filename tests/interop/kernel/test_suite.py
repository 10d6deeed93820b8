"""The suite of jupyter_kernel_test, with every sample that applies."""

import unittest

import jupyter_kernel_test as jkt


class Suite(jkt.KernelTests):
    kernel_name = "demo"
    language_name = "demo"
    file_extension = ".demo"
    code_hello_world = 'print("hello, world")'
    code_stderr = 'eprint("oops")'
    completion_samples = [
        {"text": "pri", "matches": {"print"}},
        {"text": "x = p", "matches": {"print", "panic", "progress", "password"}},
        {"text": "nothing_like_it", "matches": set()},
    ]
    complete_code_samples = ["1 + 1", "x = 2", 'print("a")', ""]
    incomplete_code_samples = ["1 +", "print(", 'print("a']
    invalid_code_samples = ["1 )", "= 2"]
    code_page_something = "help()"
    code_generate_error = 'error("no")'
    code_execute_result = [
        {"code": "1 + 2", "result": "3"},
        {"code": "1 + 2 * 3", "result": "7"},
        {"code": "1 + 20", "result": "21"},
    ]
    code_display_data = [
        {"code": "svg(3)", "mime": "image/svg+xml"},
        {"code": "progress(0.1)", "mime": "text/html"},
    ]
    code_history_pattern = "1?+ 2 *"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "print"
    code_clear_output = "clear()"


class Welcome(jkt.IopubWelcomeTests):
    kernel_name = "demo"
    support_iopub_welcome = True


if __name__ == "__main__":
    unittest.main()
