#!/usr/bin/env python3
# ctest: TIMEOUT 240
"""Every kind and every rank comes back, as what tools see; what has gaps is refused; what is no variable is not even compiled."""
import re
import subprocess
import tempfile

import toolchain

KINDS = {  # declaration: (a value, another one, the name of the type)
    "integer(int8)": ("42", "7", "i8"), "integer(int16)": ("4242", "7", "i16"), "integer(int32)": ("424242", "7", "i32"),
    "integer(int64)": ("huge(1_int64)", "7", "i64"), "integer(16)": ("42", "7", "bytes"),
    "real(real32)": ("1.5", "2.5", "f32"), "real(real64)": ("1.5d0", "2.5d0", "f64"), "real(real128)": ("1.5d0", "2.5d0", "bytes"),
    "complex(real32)": ("(1.0, 2.0)", "(3.0, 4.0)", "c64"), "complex(real64)": ("(1d0, 2d0)", "(3d0, 4d0)", "c128"),
    "logical(1)": (".true.", ".false.", "u8"), "logical(2)": (".true.", ".false.", "u16"), "logical": (".true.", ".false.", "u32"),
    "logical(8)": (".true.", ".false.", "u64"), "character(6)": ("'varve'", "'else'", "u8"),
    "character(kind=selected_char_kind('ISO_10646'), len=3)": ("4_'abc'", "4_'x'", "u32"),
}
EXTENTS = (4, 3, 2, 2, 1, 2, 3)


def listing(words):
    return ", ".join(map(str, words))


def shape_of(decl, rank):
    """In Fortran's order; of what is saved as bytes, none."""
    if KINDS[decl][2] == "bytes":
        return []
    length = re.findall(r"(?:len=|character\()(\d)", decl)
    return [*map(int, length), *EXTENTS[:rank]] or [1]


def trip(decl, rank, attribute):
    """One variable: saved, changed, restored. Its first element differs from the others."""
    value, other, kind = KINDS[decl]
    extents, shape = listing(EXTENTS[:rank]), shape_of(decl, rank)
    dims = f"({listing(':' * rank) if attribute == 'allocatable' else extents})" if rank else ""
    first = f"({listing('1' * rank)})" if rank else ""
    same = ".eqv." if decl.startswith("logical") else "=="
    lines = [f"block\n{decl}, {attribute} :: x{dims}\ntype(varve_region_info) :: info",
             f"allocate (x({extents}))" if attribute == "allocatable" else "",
             f"x = {value}\nx{first} = {other}",
             f"call varve_protect(v, 'x', x)\ncall varve_checkpoint(v)\nx = {other}\nx{first} = {value}\ncall varve_wait(v)",
             "call varve_region(v, 'x', info)",
             f"if (info%type /= varve_{kind} .or. size(info%shape) /= {len(shape)}) call wrong('type of {decl[:14]}', {rank})",
             f"if (any(info%shape /= [{listing(shape)}])) call wrong('shape of {decl[:14]}', {rank})" if shape else "",
             f"call varve_restart(v)\nif (.not. (x{first} {same} {other})) call wrong('first of {decl[:14]}', {rank})",
             f"x{first} = {value}\nif (.not. all(x {same} {value})) call wrong('{decl[:14]}', {rank})" if rank else "",
             "call varve_unprotect(v, 'x')\nend block\n"]
    return "\n".join(line for line in lines if line)


def program(body, procedures):
    return f"""
module at_work
  use varve
  use, intrinsic :: iso_fortran_env
  implicit none
  type(varve_session) :: v
  integer :: failures = 0
contains
  subroutine wrong(what, rank)
    character(*), intent(in) :: what
    integer, intent(in) :: rank
    print *, 'wrong: ', what, rank
    failures = failures + 1
  end subroutine
end module
program every_kind
  use at_work
  implicit none
  real :: c77
  common /old/ c77
  call varve_open(v, 'mem:kinds', 'a', 'codec=none')
  {body}
  if (failures > 0) error stop 1
contains
{procedures}
end program
"""


def kinds():
    parts = ["".join(trip(decl, rank, "allocatable" if rank and (rank + i) % 2 else "target") for rank in range(8))
             for i, decl in enumerate(KINDS)]
    return program("".join(f"call part_{i}()\n" for i in range(len(parts))),
                   "".join(f"subroutine part_{i}()\n{part}end subroutine\n" for i, part in enumerate(parts)))


GAPS = {  # an array that is not its own memory in one piece: the dimension in which it has gaps, or runs backwards
    "a(2, :)": 1, "a(::2, :)": 1, "a(1:3, :)": 2, "a(4:1:-1, 1)": 1, "a(:, ::2)": 2, "a(:, 4:1:-1)": 2, "z%re": 1, "z(:)%im": 1,
    "names(:)(2:3)": 1, "parts%weight": 1, "parts(:)%place(2)": 1, "p": 1, "p2(1:2, :)": 2,
}
DENSE = ["a", "a(:, 2)", "a(:, 2:3)", "a(2:3, 2)", "a(2, 2)", "z(2)%re", "names(2)(2:3)", "parts(2)%place", "a(2:2, 3:3)", "z(2:2)%im",
         "a(3:2, :)", "p2", "parts(2)%weight", "c77"]


def wrong(section):
    return "runs backwards" if ":-1" in section else "has gaps"


def gaps():
    lines = [f"call varve_protect(v, 'x', {x}, stat, msg)\n"
             f"if (stat /= varve_einval .or. index(msg, 'not contiguous') == 0 .or. index(msg, 'dimension {d} {wrong(x)}') == 0) &\n"
             f"  call wrong(\"{x}: \"//trim(msg), stat)\n" for x, d in GAPS.items()]
    # taken, and the very memory: it comes back
    lines += [f"call varve_protect(v, 'y', {x}, stat, msg)\nif (stat /= 0) call wrong(\"{x}: \"//trim(msg), stat)\n" for x in DENSE]
    lines += ["call varve_unprotect(v, 'y')\ncall varve_protect(v, 'column', a(:, 2))\ncall varve_protect(v, 'place', parts(2)%place)\n"
              "call varve_protect(v, 'p2', p2)\ncall varve_protect(v, 'im', z(2:2)%im)\n"
              "a = 1; a(:, 2) = [1, 2, 3, 4]; parts(2)%place = [5, 6, 7]; p2(1, 1) = 8; z%im = 9\n"
              "call varve_checkpoint(v)\ncall varve_wait(v)\n"
              "a = 0; parts(2)%place = 0; p2 = 0; z%im = 0\ncall varve_restart(v)\n"
              "if (any(a(:, 2) /= [1, 2, 3, 4]) .or. any(a(:, 1) /= 0)) call wrong('a column', 0)\n"
              "if (any(parts(2)%place /= [5, 6, 7])) call wrong('a component', 0)\n"
              "if (p2(1, 1) /= 8) call wrong('a pointer', 0)\nif (z(2)%im /= 9 .or. z(1)%im /= 0) call wrong('a part', 0)\n"]
    return program("""
  block
    type :: part
      real :: weight
      integer :: place(3)
    end type
    real, target :: a(4, 4)
    complex, target :: z(4)
    character(5), target :: names(3)
    type(part), target :: parts(3)
    real, pointer :: p(:), p2(:, :)
    integer :: stat
    character(300) :: msg
    p => z%re
    allocate (p2(3, 3))
""" + "".join(lines) + """
    nullify (p)
    call varve_protect(v, 'x', p, stat, msg)
    if (stat /= varve_einval .or. index(msg, 'not associated') == 0) call wrong('null: '//trim(msg), stat)
    call old_style(a, 16)
  end block
""", """
  subroutine old_style(x, n)
    real, intent(inout) :: x(*)
    integer, intent(in) :: n
    integer :: stat
    character(300) :: msg
    call varve_protect(v, 'x', x, stat, msg)
    if (stat /= varve_einval .or. index(msg, 'assumed-size') == 0) call wrong('x(*): '//trim(msg), stat)
    call varve_protect(v, 'x', x(1:n), stat, msg)
    if (stat /= 0) call wrong('x(1:n): '//trim(msg), stat)
  end subroutine
""")


FORBIDDEN = ["(x)", "x + 1", "1.0", "f()", "constant", "x([1, 3])", "given"]


def forbidden(what):
    return f"""
subroutine s(v, x, given)
  use varve
  type(varve_session) :: v
  real, target :: x(3)
  real, intent(in) :: given
  real, parameter :: constant(2) = 1.0
  call varve_protect(v, 'x', {what})
contains
  function f()
    real :: f
    f = 1
  end function
end subroutine
"""


def last_words():
    """Without stat a failure ends the program, with its reason."""
    return "use varve\ntype(varve_session) :: v\ninteger :: x(4)\ncall varve_open(v, 'mem:x', 'a')\n" \
           "print '(a)', 'so far'\ncall varve_protect(v, 'x', x(::2))\nprint '(a)', 'no further'\nend\n"


toolchain.need_compiler()
with tempfile.TemporaryDirectory() as folder:
    for name, source, levels in (("kinds", kinds(), ("-O0",)), ("gaps", gaps(), ("-O0", "-O3", "-fcheck=all"))):
        for level in levels:
            done = subprocess.run([toolchain.build(folder, name, source, level, *toolchain.LINK)], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            print(name, level, done.returncode)
            assert done.returncode == 0, done.stdout
    fine, said = toolchain.compile(folder, forbidden("x"), "-fsyntax-only", "-x", "f95", "-")
    assert fine, said
    for what in FORBIDDEN:
        fine, said = toolchain.compile(folder, forbidden(what), "-fsyntax-only", "-x", "f95", "-")
        assert not fine and re.search(r"INTENT|variable definition context|subscript", said), f"{what}: {fine}\n{said}"
    done = subprocess.run([toolchain.build(folder, "last_words", last_words(), *toolchain.LINK)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stdout == "so far\n" and "region 'x': the array is not contiguous" in done.stderr, done
