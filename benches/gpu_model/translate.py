"""Translates the shaders, as they are in the repository, to CUDA, and compiles them to SASS.

naga writes Metal's language, which is C++; the headers in `shim/` define what it uses of Metal. The
translation has what wgpu adds to a shader that it does not trust: indices are restricted to the
array, and loops are bounded. What NVIDIA's Vulkan driver makes of the shader may differ: it shares
the last compiler (from PTX-like code to SASS), not the first ones.
"""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SETS = ["memory", "lists", "programs", "planes", "counts", "steps"]


def sources(name):
    """Returns the WGSL of a shader. Column sets are one shader in several files."""
    if name == "column_sets":
        files = [ROOT / "shaders" / "column_sets" / f"{part}.wgsl" for part in SETS]
    else:
        files = [ROOT / "shaders" / f"{name}.wgsl"]
    return "\n".join(file.read_text() for file in files)


def metal(wgsl, entry, overrides, folder, checked=True):
    """Returns naga's translation of WGSL to Metal's language."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shader.wgsl").write_text(wgsl)
    command = ["naga", str(folder / "shader.wgsl"), str(folder / "shader.metal")]
    command += ["--entry-point", entry]
    if checked:
        command += ["--index-bounds-check-policy", "Restrict",
                    "--buffer-bounds-check-policy", "Unchecked"]
    if overrides:
        command += ["--override", ",".join(f"{name}={value}" for name, value in overrides.items())]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (folder / "shader.metal").read_text()


def cuda(text, entry, lanes, bounded=True):
    """Returns Metal's language with annotations for nvcc, and a kernel that calls the entry."""
    text = re.sub(r"\.(xy|yz|zw)\b", r".\1()", text)
    text = re.sub(r" ?\[\[[^\]]*\]\]", "", text)
    if not bounded:
        text = re.sub(r"\n *uint2 loop_bound\w* = .*", "\n", text)
        text = re.sub(r"\n *if \(metal::all\(loop_bound\w* == .*", "\n", text)
        text = re.sub(r"\n *loop_bound\w* -= .*", "\n", text)
    text = re.sub(r"(?<!metal::)\buint2\b", "metal::uint2", text)
    # The bodies of functions are inlined, as drivers do it.
    text = re.sub(r"^(?!typedef|struct)([\w:]+ \w+\((?:\w+ .*)?)$", r"FUNCTION \1", text, flags=re.M)
    text = text.replace(f"kernel void {entry}(", f"FUNCTION void {entry}(")
    # naga's program clears workgroup memory, which wgpu is told not to do.
    text = re.sub(r"    if \(index == 0u\) \{\n(        .*\n)*?    \}\n    metal::threadgroup_barrier"
                  r"\(metal::mem_flags::mem_threadgroup\);\n", "", text, count=1)
    signature = re.search(rf"FUNCTION void {entry}\((.*?)\n\) \{{", text, re.S).group(1)
    takes, shared, gives = [], [], []
    for parameter in signature.replace("\n", " ").split(","):
        words = parameter.split()
        name, space = words[-1], words[0]
        kind = " ".join(words[1:-1]).replace("const&", "").replace("&", "").strip()
        if space == "threadgroup":
            shared.append(f"    __shared__ {kind} {name};")
            gives.append(name)
        elif space == "constant":
            # Uniform buffers are in the constant bank, as parameters of kernels are.
            takes.append(f"const __grid_constant__ {kind} {name}")
            gives.append(name)
        elif space == "device":
            takes.append(f"{kind} *__restrict__ {name}")
            gives.append(f"*{name}")
        elif "uint3" in space and "id" in name and "invocation" not in signature:
            gives.append("metal::uint3(blockIdx.x, 0u, 0u)" if entry == "count_sets"
                         else f"metal::uint3(blockIdx.x * {lanes}u + threadIdx.x, 0u, 0u)")
        else:
            gives.append("threadIdx.x")
    # Compilers find the address spaces by themselves after inlining.
    text = re.sub(r"\b(device|threadgroup|thread) ", "", text)
    text = re.sub(r"\bconstant ", "const ", text)
    separator = ",\n    "
    return (f"{text}\nextern \"C\" __global__ void __launch_bounds__({lanes})\nentry(\n    "
            f"{separator.join(takes)}) {{\n" + "\n".join(shared) +
            f"\n    {entry}({', '.join(gives)});\n}}\n")


def nvidia(program):
    """Returns the path of a program of the packages in requirements.txt."""
    folder = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia"
    for found in sorted(folder.glob(f"*/bin/{program}")):
        return str(found)
    return program


def compile_cuda(source, folder, arch):
    """Compiles CUDA to a cubin. Returns its path and what ptxas says of registers."""
    (folder / "shader.cu").write_text(source)
    cubin = folder / f"{arch}.cubin"
    command = [nvidia("nvcc"), "-cubin", f"-arch={arch}", "-O3", "-lineinfo", "-std=c++17", "-w",
               f"-I{HERE / 'shim'}", "-Xptxas", "-v", "-o", str(cubin),
               str(folder / "shader.cu")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    registers = re.findall(r"Used (\d+) registers", done.stderr)
    spills = re.findall(r"(\d+) bytes spill stores", done.stderr)
    shared = re.findall(r"(\d+) bytes smem", done.stderr)
    return cubin, {"registers": int(registers[-1]), "spills": int(spills[-1]),
                   "shared": int(shared[-1]) if shared else 0}


def build(name, entry, overrides, lanes, arch, folder, checked=True, bounded=True, wgsl=None):
    """Compiles a shader of the repository, or `wgsl`. Returns the cubin and its resources."""
    folder = pathlib.Path(folder)
    text = metal(wgsl or sources(name), entry, overrides, folder, checked)
    return compile_cuda(cuda(text, entry, lanes, bounded), folder, arch)


if __name__ == "__main__":
    out = pathlib.Path(os.environ.get("OUT", "/tmp/gpu_model"))
    constants = {"LANES": 64, "PLANES": 128, "MASK_PLANES": 24}
    print(build("column_sets", "count_sets", constants, 64, "sm_90", out / "column_sets"))
    print(build("search", "search", {"DEPTH": 8}, 64, "sm_90", out / "search"))
