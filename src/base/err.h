/* Errors: a negative code, and a message of the calling thread, written once where the failure is
 * decided. All callers return the code unchanged. */
#ifndef VV_BASE_ERR_H
#define VV_BASE_ERR_H

enum vv_err {
	VV_OK = 0,
	/* the caller's mistake: bad argument, wrong order of calls, a limit exceeded */
	VV_EINVAL = -1,
	VV_ENOMEM = -2,
	VV_EIO = -3,       /* disk, network or system call failed */
	VV_ENOENT = -4,    /* no such store, lineage, epoch, region, object */
	VV_EDAMAGED = -5,  /* stored bytes are not those that were written */
	VV_EBUSY = -6,     /* another process holds it, or changes it now */
	VV_EMISMATCH = -7, /* the stored data does not match the request */
	VV_ENOSPC = -8,
	VV_ENOTSUP = -9,   /* not built in, or not possible on this kind of store */
	VV_EDENIED = -10,  /* permission or credentials */
	VV_EPEER = -11,    /* another rank failed, or did not arrive */
};

struct vv_err_state {
	int code;
	char message[1024];
};

/* Sets the thread's message and returns code. */
int vv_err_set(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for a failed system call: the code follows from errnum, and ": <reason>" is appended. */
int vv_err_sys(int errnum, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Puts "<words>: " before the message, if only the caller knows the purpose of the failed
 * operation. */
int vv_err_context(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

const char *vv_err_last(void);
const char *vv_err_name(int code);
void vv_err_clear(void);

/* Carries an error from a worker thread to the thread that reports it. */
void vv_err_save(int code, struct vv_err_state *out);
int vv_err_restore(const struct vv_err_state *st);

#endif
