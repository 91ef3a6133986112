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


def row(what, modelled, found):
    """A line of the table; found may be None."""
    return what, modelled, found


def pingpong(here):
    """Ratios of paper 003."""
    return [row(f"003-5 ping-pong, {size} B, ready by MPI",
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
    rows = [row(f"003 table V, {problem}, {name}, {ranks} ranks, us",
                halo_time(here, problem, alone, name, ranks, node, kernels),
                alone / speedup)
            for problem, alone, name, speedup, ranks, node in HALO]
    rows[0] = row(f"{rows[0][0]} (fitted: kernels take {kernels:.0f} us)", *rows[0][1:])
    return rows


def published():
    """All of the papers that has a number; constants of the text, and fitted."""
    rows = []
    for here in (machine.FRONTIER, machine.FITTED):
        rows += [row(f"{what} [{here.name}]", *rest)
                 for what, *rest in pingpong(here)]
    rows += halo(machine.FITTED)
    return rows + [row(*line) for line in LIBMP]


def shared(here, names, ranks, cores, strong=1):
    """Times of kernels when ranks share processors: strong is how many ranks a
    traced kernel was of if all of them share the work."""
    factor = max(1, ranks / cores) * (strong / ranks if strong > 1 else 1)
    try:
        return tuple(here.kernels[name] * factor for name in names)
    except KeyError as error:
        raise machine.BadReport(f"no trace has kernel {error}") from None


KERNELS = {"faces": ("faces_kernel_pack", "faces_kernel_interior",
                     "faces_kernel_unpack"),
           "life": ("life_kernel_pack", "life_kernel_step"),
           "cg": ("cg_kernel_apply", "cg_kernel_update", "cg_kernel_direction")}
WAY = {"mpi": "mpi", "st": "direct", "st-ready": "direct"}


def runs_here(here, paths, cores):
    """Reports of st_pingpong, st_faces, st_life and st_cg against the model. The
    traces were of two ranks."""
    rows = []
    for path in paths:
        bench, times, ranks = machine.read_report(path)
        program = bench.removeprefix("st_")
        for variant, sizes in times.items():
            if variant not in WAY:
                continue
            name = WAY[variant]
            if bench == "st_pingpong":
                rows += [row(f"round trip, {size} B, {variant}, us",
                             2 * half_trip(here, size, name), found)
                         for size, found in sizes.items()
                         if size in (8, 512, 8192, 32768, 131072)]
            elif program in KERNELS:
                flat = 1 if name == "mpi" else 16
                kernels = shared(here, KERNELS[program], ranks, cores,
                                 1 if program == "faces" else 2)
                rows += [row(f"{bench}, {ranks} ranks, {variant}, us",
                             simulate.run(here, program, name, ranks, 20, flat=flat,
                                          kernels=kernels)[0], found)
                         for found in sizes.values()]
    return rows


def table(rows):
    """Text of rows, with the error of each."""
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
