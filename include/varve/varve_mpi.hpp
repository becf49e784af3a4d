/* varve.hpp for MPI programs: link with libvarve_mpi as well as libvarve.
 *
 *	varve_mpi::session s(MPI_COMM_WORLD, "ckpt", "heat");
 *
 * by all ranks of the communicator together; from there on it is a varve::session. All ranks have
 * containers that may move, or none has: then all wait in checkpoint(), or none does. Close it
 * before MPI_Finalize. */
#ifndef VARVE_VARVE_MPI_HPP
#define VARVE_VARVE_MPI_HPP

#include <varve/varve.hpp>
#include <varve/varve_mpi.h>

namespace varve_mpi {

class session : public varve::session {
public:
	session() noexcept = default;
	explicit session(std::nothrow_t no) noexcept : varve::session(no) {}
	session(MPI_Comm comm, const std::string &store, const std::string &lineage, const std::string &options = "")
	{
		open(comm, store, lineage, options);
	}

	using varve::session::open;
	int open(MPI_Comm comm, const std::string &store, const std::string &lineage, const std::string &options = "")
	{
		::varve_session *v = nullptr;
		int rc = ::varve_open_mpi(comm, store.c_str(), lineage.c_str(), options.c_str(), &v);

		return adopt(rc, v);
	}
};

} // namespace varve_mpi

#endif
