/* One sentence per event: a line on stderr, "varve: ...", or a call of the program's function; by
 * default only warnings and errors. */
#ifndef VV_BASE_LOG_H
#define VV_BASE_LOG_H

#include <stdbool.h>

enum vv_log_level { VV_LOG_ERROR, VV_LOG_WARN, VV_LOG_INFO, VV_LOG_DEBUG };

void vv_log_set_level(enum vv_log_level level);
/* The function receives all sentences from now on; NULL: stderr does. When the call returns, no
 * thread is in the previous function any more. */
void vv_log_set_function(void (*fn)(void *arg, int level, const char *sentence), void *arg);
/* Is this thread in the function? */
bool vv_log_is_inside(void);
void vv_log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void vv_log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
