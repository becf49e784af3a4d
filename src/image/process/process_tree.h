/* A process and all below it. */
#ifndef VV_IMAGE_PROCESS_PROCESS_TREE_H
#define VV_IMAGE_PROCESS_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct vv_process_tree {
	pid_t *pid; /* parents before their children; the first is the root */
	size_t n, cap;
};

/* VV_ENOENT: there is no such process. */
int vv_process_tree_list(pid_t root, struct vv_process_tree *out);
void vv_process_tree_fini(struct vv_process_tree *t);
/* Memory that is a process's own, of no file, or changed. */
uint64_t vv_process_tree_own(pid_t pid);
/* Memory that is their own, about: what an image of them holds. */
uint64_t vv_process_tree_memory(const struct vv_process_tree *t);
/* It has ended, and only its parent has not heard of that yet. */
bool vv_process_tree_is_zombie(pid_t pid);
/* 0: there is none, or none in this pid namespace. */
pid_t vv_process_tree_parent(pid_t pid);
/* It is a thread of the kernel, which has no memory of its own. */
bool vv_process_tree_is_kernels(pid_t pid);
/* Its number in its own pid namespace; 0: there is no such process. */
int vv_process_tree_inner(pid_t pid);
/* Who traces it; 0: nobody, or somebody outside of this pid namespace. */
pid_t vv_process_tree_tracer(pid_t pid);
/* They were killed. Waits until all have ended, as long as those that have not become fewer. That their parents hear of it is not waited for: in a
 * container whose first process hears of nobody they never do. Who needs their numbers waits for that (image/criu/pstree_image.h). */
void vv_process_tree_wait(const struct vv_process_tree *t);
/* All that is below this process ends, and is waited for. */
void vv_process_tree_clear(void);
/* Kills a criu that restores with its files in this folder, and all its descendants. Neither ends by itself if one of them is killed before the program
 * runs. */
void vv_process_tree_end_criu(const char *folder);
/* A small file below /proc/PID, NUL-terminated; -1: it cannot be read. */
ssize_t vv_process_tree_read(pid_t pid, const char *name, char *out, size_t cap);
/* Is `pid` in another namespace of that kind than `from`? */
bool vv_process_tree_is_apart(pid_t pid, pid_t from, const char *kind);

#endif
