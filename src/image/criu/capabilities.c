#include "image/criu/capabilities.h"
#include "image/process/process_tree.h"
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	unsigned bit;
	bool restore;
	const char *name;
} needed[] = {
	{ CAP_SYS_ADMIN, false, "CAP_SYS_ADMIN" },   { CAP_SYS_PTRACE, false, "CAP_SYS_PTRACE" }, { CAP_NET_ADMIN, false, "CAP_NET_ADMIN" },
	{ CAP_SYS_CHROOT, true, "CAP_SYS_CHROOT" }, { CAP_SETPCAP, true, "CAP_SETPCAP" },
};

static unsigned long long have_now(void)
{
	char status[4096];
	const char *at = vv_process_tree_read(getpid(), "status", status, sizeof(status)) > 0 ? strstr(status, "\nCapEff:") : NULL;

	return at ? strtoull(at + strlen("\nCapEff:"), NULL, 16) : ~0ULL;
}

bool vv_capabilities_stay_home(void)
{
	return !(have_now() >> CAP_SYS_RESOURCE & 1);
}

bool vv_capabilities_lack(bool restore, char names[VV_CAPABILITIES_WORDS])
{
	unsigned long long have = have_now();
	size_t n = 0;

	names[0] = '\0';
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (needed[i].restore == restore && !(have >> needed[i].bit & 1))
			n += (size_t)snprintf(names + n, VV_CAPABILITIES_WORDS - n, "%s%s", n ? ", " : "", needed[i].name);
	return n;
}

void vv_capabilities_advice(char words[VV_CAPABILITIES_WORDS])
{
	char names[VV_CAPABILITIES_WORDS];

	if (geteuid() != 0)
		snprintf(words, VV_CAPABILITIES_WORDS, "criu needs to be run by root");
	else if (vv_capabilities_lack(false, names) || vv_capabilities_lack(true, names))
		snprintf(words, VV_CAPABILITIES_WORDS, "criu needs %.80s, which root lacks here: run it outside of the container", names);
	else
		snprintf(words, VV_CAPABILITIES_WORDS, "root is refused that here, by a security module or a container's filter");
}
