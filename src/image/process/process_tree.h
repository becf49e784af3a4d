/* A process and all its descendants. */
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
/* Private memory of a process in bytes: anonymous or modified pages, including swapped ones. */
uint64_t vv_process_tree_own(pid_t pid);
/* Memory of the tree in bytes, the approximate size of its image. */
uint64_t vv_process_tree_memory(const struct vv_process_tree *t);
/* It has ended, and its parent has not waited for it yet. */
bool vv_process_tree_is_zombie(pid_t pid);
/* Returns 0 if there is no parent in this pid namespace. */
pid_t vv_process_tree_parent(pid_t pid);
/* It is a kernel thread, which has no memory of its own. */
bool vv_process_tree_is_kernels(pid_t pid);
/* Its number in its own pid namespace; 0: there is no such process. */
int vv_process_tree_inner(pid_t pid);
/* The process that traces it. 0: there is none, or it is outside of this pid namespace. */
pid_t vv_process_tree_tracer(pid_t pid);
/* Waits until all killed processes have ended, or their number has not decreased for 5 s. It does
 * not wait for their parents to reap them: the first process of a container may never do so. A
 * caller that needs their numbers waits for that (image/criu/pstree_image.h). */
void vv_process_tree_wait(const struct vv_process_tree *t);
/* The present descendants of this process are not its own: another program may have started them
 * before it became varve by exec. vv_process_tree_clear leaves them and their descendants alone. */
int vv_process_tree_spare(void);
/* Kills all other descendants of this process and waits for them. */
void vv_process_tree_clear(void);
/* Kills a criu that restores with its files in this folder, and all its descendants. Neither ends
 * by itself if one of them is killed before the program runs. */
void vv_process_tree_end_criu(const char *folder);
/* Reads a small file below /proc/PID, NUL-terminated. Returns its length; -1: it cannot be read. */
ssize_t vv_process_tree_read(pid_t pid, const char *name, char *out, size_t cap);
/* Returns whether the namespaces of this kind of `pid` and `from` differ. */
bool vv_process_tree_is_apart(pid_t pid, pid_t from, const char *kind);

#endif
