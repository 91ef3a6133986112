# SPDX-License-Identifier: BSD-3-Clause
"""The model against what papers published, and against runs here: the error of
each figure."""
import machine
import simulate
import step

# Paper 003, ping-pong on Frontier, ready sends: time by that of Cray MPICH's
PINGPONG = {32: 0.58, 16384: 0.58, 32768: 0.51, 262144: 0.67, 1 << 20: 0.86,
            8 << 20: 1.0}
# ... its table V and the text around: problem, what it takes on one GPU (us a
# step), way, greatest speed-up, ranks, ranks of a node
HALO = (("2 GB", 6156, "mpi", 50.23, 1024, 1), ("2 GB", 6156, "direct", 50.23, 1024, 2),
        ("2 GB", 6156, "paper", 40.49, 1024, 2),
        ("30 GB", 88670, "mpi", 485.4, 4096, 4),
        ("30 GB", 88670, "direct", 622.2, 8192, 8),
        ("30 GB", 88670, "paper", 543.7, 4096, 4))
# Paper 004: what streams take of MPI's time by the formulas of its section 4, from
# the profiles that it has, and as it was measured (the best case)
LIBMP = (("004 HPGMG, by the GPU's time (C2)", 1 - 0.28, 1 - 0.24),
         ("004 HPGMG, by the host's time and C1", 1.49 * 0.36, 1 - 0.24),
         ("004 CoMD, by the GPU's time (C2)", 1 - 0.40, 1 - 0.30),
         ("004 CoMD, all, 7 % of it messages", 1 - 0.07 * 0.30, 1 - 0.05))


def half_trip(here, size, name):
    """From pack to pack of a ping-pong: two short kernels, one message. The peer
    has given its clear-to-send long before."""
    way = step.WAYS[name]
    both = here.latency + step.service(here, size, way)
    if name == "mpi":
        return (both + step.handshake(here, size) + here.launch + here.begin +
                here.sync + here.post + here.complete)
    return both + here.store + here.react


def pingpong(here):
    """Ratios of paper 003."""
    return [(f"003-5 ping-pong, {size} B, ready by MPI",
                half_trip(here, size, "ready") / half_trip(here, size, "mpi"), found)
            for size, found in PINGPONG.items()]


def halo_time(here, problem, alone, name, ranks, node, kernels):
    """A step of paper 003's Life: cells of 8 bytes, two fields; kernels is what
    the step takes on each GPU however small the problem is."""
    width = int((float(problem.split()[0]) * 1e9 / 16) ** 0.5)
    here = here.but(ranks_node=node, ranks_card=min(node, 2), group=128)
    return simulate.run(here, "life", name, ranks, 6, width=width, cell=8,
                        kernels=(kernels, alone / ranks))[0]


def halo(here):
    """Times of table V; the kernels' least time is such that the first is right."""
    first = HALO[0]
    found = first[1] / first[3]
    kernels = found - halo_time(here, *first[:3], *first[4:], 0.0)
    rows = [(f"003 table V, {problem}, {name}, {ranks} ranks, us",
             halo_time(here, problem, alone, name, ranks, node, kernels),
             alone / speedup)
            for problem, alone, name, speedup, ranks, node in HALO]
    rows[0] = (f"{rows[0][0]} (fitted: kernels take {kernels:.0f} us)", *rows[0][1:])
    return rows


def published():
    """All of the papers that has a number; constants of the text, and fitted."""
    rows = [(f"{what} [{here.name}]", *rest)
            for here in (machine.FRONTIER, machine.FITTED)
            for what, *rest in pingpong(here)]
    return rows + halo(machine.FITTED) + list(LIBMP)


KERNELS = {"st_faces": ("faces_kernel_pack", "faces_kernel_interior",
                        "faces_kernel_unpack"),
           "st_life": ("life_kernel_pack", "life_kernel_step"),
           "st_cg": ("cg_kernel_apply", "cg_kernel_update", "cg_kernel_direction")}
WAY = {"mpi": "mpi", "st": "direct", "st-ready": "direct"}


def step_here(here, bench, ranks, name, cores):
    """A step of a benchmark; traces were of two ranks. Ranks share processors, and
    but for st_faces the work."""
    factor = max(1, ranks / cores) * (1 if bench == "st_faces" else 2 / ranks)
    try:
        kernels = tuple(here.kernels[kernel] * factor for kernel in KERNELS[bench])
    except KeyError as error:
        raise machine.BadReport(f"no trace has kernel {error}") from None
    return simulate.run(here, bench.removeprefix("st_"), name, ranks, 20,
                        flat=1 if name == "mpi" else 16, kernels=kernels)[0]


def runs_here(here, paths, cores):
    """Reports of st_pingpong, st_faces, st_life and st_cg against the model."""
    rows = []
    for (bench, ranks), ways in machine.read_reports(paths).items():
        for variant, sizes in ways.items():
            name = WAY.get(variant)
            for size, found in sizes.items() if name else ():
                if bench == "st_pingpong" and size in (8, 512, 8192, 32768, 131072):
                    rows.append((f"round trip, {size} B, {variant}, us",
                                 2 * half_trip(here, size, name), found))
                elif bench in KERNELS:
                    rows.append((f"{bench}, {ranks} ranks, {variant}, us",
                                 step_here(here, bench, ranks, name, cores), found))
    return rows


def table(rows):
    """Text of rows, with the error of each."""
    if not rows:
        raise machine.BadReport("no report has a figure that the model knows")
    lines = ["| figure | model | found | error |", "| --- | ---: | ---: | ---: |"]
    for what, modelled, found in rows:
        error = 100 * (modelled / found - 1)
        digits = 2 if found < 10 else 1
        lines.append(f"| {what} | {modelled:.{digits}f} | {found:.{digits}f} | "
                     f"{error:+.0f} % |")
    errors = sorted(abs(modelled / found - 1) for _, modelled, found in rows)
    lines.append(f"\nmedian error {100 * errors[len(errors) // 2]:.0f} %, largest "
                 f"{100 * errors[-1]:.0f} %")
    return "\n".join(lines)
