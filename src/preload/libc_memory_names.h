/* The only list of the C library's functions that return allocated memory to the program. The
 * exports, the lookups and the required cases of tests/preload/here_gifts.c come from this list.
 *
 * getcwd is in wrap_names.h. Functions are left out if their memory represents an outside
 * resource or is the C library's own record. (These are fopen and its like, opendir, iconv_open,
 * newlocale, setlocale, setenv, dlopen, hcreate, getaddrinfo, getifaddrs, if_nameindex,
 * sem_open, pthread_attr_setaffinity_np.) */
#ifndef VV_PRELOAD_LIBC_MEMORY_NAMES_H
#define VV_PRELOAD_LIBC_MEMORY_NAMES_H

#include <features.h>

/* for posix_spawn, by version of the C library */
#if __GLIBC_PREREQ(2, 29)
#define VV_LIBC_MEMORY_NAMES_2_29(X) X(posix_spawn_file_actions_addchdir_np) X(posix_spawn_file_actions_addfchdir_np)
#else
#define VV_LIBC_MEMORY_NAMES_2_29(X)
#endif
#if __GLIBC_PREREQ(2, 34)
#define VV_LIBC_MEMORY_NAMES_2_34(X) X(posix_spawn_file_actions_addclosefrom_np)
#else
#define VV_LIBC_MEMORY_NAMES_2_34(X)
#endif
#if __GLIBC_PREREQ(2, 35)
#define VV_LIBC_MEMORY_NAMES_2_35(X) X(posix_spawn_file_actions_addtcsetpgrp_np)
#else
#define VV_LIBC_MEMORY_NAMES_2_35(X)
#endif

/* for scanf, which has a name for each standard that changed its format */
#define VV_LIBC_MEMORY_NAMES_SCAN(X, of)                                                                                                                \
	X(of##scanf) X(of##fscanf) X(of##sscanf) X(of##vscanf) X(of##vfscanf) X(of##vsscanf)                                                     \
	X(of##wscanf) X(of##fwscanf) X(of##swscanf) X(of##vwscanf) X(of##vfwscanf) X(of##vswscanf)
#if __GLIBC_PREREQ(2, 38)
#define VV_LIBC_MEMORY_NAMES_2_38(X) VV_LIBC_MEMORY_NAMES_SCAN(X, __isoc23_)
#else
#define VV_LIBC_MEMORY_NAMES_2_38(X)
#endif

#define VV_LIBC_MEMORY_NAMES(X)                                                                                                                         \
	/* libc_memory.c */                                                                                                                             \
	X(strdup) X(__strdup) X(strndup) X(__strndup) X(wcsdup) X(asprintf) X(vasprintf) X(__asprintf_chk) X(__vasprintf_chk)                    \
	X(getline) X(getdelim) X(__getdelim) X(realpath) X(__realpath_chk) X(canonicalize_file_name) X(get_current_dir_name) X(tempnam)          \
	X(backtrace_symbols) X(scandir) X(scandir64) X(scandirat) X(scandirat64) X(glob) X(glob64) X(wordexp)                                    \
	/* libc_memory_stream.c */                                                                                                                      \
	X(open_memstream) X(open_wmemstream) X(setvbuf) X(setbuf) X(setbuffer) X(fclose)                                                         \
	/* libc_memory_scan.c */                                                                                                                        \
	VV_LIBC_MEMORY_NAMES_SCAN(X, ) VV_LIBC_MEMORY_NAMES_SCAN(X, __isoc99_) VV_LIBC_MEMORY_NAMES_2_38(X)                                                           \
	/* libc_memory_within.c */                                                                                                                      \
	X(tsearch) X(hcreate_r) X(__sched_cpualloc)                                                                                              \
	X(argz_create) X(argz_create_sep) X(argz_add) X(argz_add_sep) X(argz_append) X(argz_insert) X(argz_replace) X(envz_add) X(envz_merge)    \
	X(_obstack_begin) X(_obstack_begin_1) X(_obstack_newchunk)                                                                               \
	X(obstack_printf) X(obstack_vprintf) X(__obstack_printf_chk) X(__obstack_vprintf_chk)                                                    \
	X(regcomp) X(regexec) X(re_compile_pattern) X(re_compile_fastmap) X(re_search) X(re_search_2) X(re_match) X(re_match_2)                  \
	X(posix_spawn_file_actions_addopen) X(posix_spawn_file_actions_addclose) X(posix_spawn_file_actions_adddup2)                             \
	VV_LIBC_MEMORY_NAMES_2_29(X) VV_LIBC_MEMORY_NAMES_2_34(X) VV_LIBC_MEMORY_NAMES_2_35(X)

#endif
