"""What pytest does not look into for examples: kernels, where there is no Triton to import."""

from importlib.util import find_spec

KERNELS = ["src/expclr/**/*_kernel*.py", "src/expclr/methods/streamed_tiles.py"]
collect_ignore_glob = [] if find_spec("triton") else KERNELS
