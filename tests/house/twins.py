"""What mypy checks of pairs of modules: that each is what its Protocol states, types included. Nothing imports this."""

from cusp.apps.graph500 import edge_list_cpu, edge_list_gpu
from cusp.apps.graph500.interfaces import EdgeList
from cusp.apps.operators import undirected_cpu, undirected_gpu
from cusp.apps.operators.batches import batches_cpu, batches_gpu
from cusp.apps.operators.batches.interfaces import Batches, CpuBatches
from cusp.apps.operators.communities import communities_cpu, communities_gpu
from cusp.apps.operators.communities.interfaces import Communities
from cusp.apps.operators.expressions import drains_cpu, drains_gpu, edges_cpu, edges_gpu
from cusp.apps.operators.expressions.interfaces import Drains, Edges
from cusp.apps.operators.interfaces import Undirected
from cusp.apps.operators.samples import samples_cpu, samples_gpu
from cusp.apps.operators.samples.interfaces import Samples
from cusp.apps.operators.structure import (
    cc_cpu,
    cc_gpu,
    cores_cpu,
    cores_gpu,
    kcore_cpu,
    kcore_gpu,
)
from cusp.apps.operators.structure.interfaces import Cc, Cores, Kcore
from cusp.apps.operators.sums import betweenness_cpu, betweenness_gpu, pagerank_cpu, pagerank_gpu, rows_cpu, rows_gpu
from cusp.apps.operators.sums.interfaces import Betweenness, CpuBetweenness, CpuPagerank, Pagerank, Rows
from cusp.apps.operators.traversal import bfs_cpu, bfs_gpu, sssp_cpu, sssp_gpu
from cusp.apps.operators.traversal.interfaces import Bfs, Sssp
from cusp.apps.operators.triangles import triangles_cpu, triangles_gpu, truss_cpu, truss_gpu
from cusp.apps.operators.triangles.interfaces import Triangles, Truss
from cusp.input import read_cpu, read_gpu
from cusp.input.interfaces import Read
from cusp.kernels import build_cpu, build_gpu
from cusp.kernels.interfaces import Build
from gluon import device_cpu, device_gpu, message_cpu, message_gpu
from gluon.interfaces import Device, Message

read: tuple[Read, Read] = read_cpu, read_gpu
build: tuple[Build, Build] = build_cpu, build_gpu
device: tuple[Device, Device] = device_cpu, device_gpu
message: tuple[Message, Message] = message_cpu, message_gpu
undirected: tuple[Undirected, Undirected] = undirected_cpu, undirected_gpu
rows: tuple[Rows, Rows] = rows_cpu, rows_gpu
pagerank: tuple[CpuPagerank, Pagerank] = pagerank_cpu, pagerank_gpu
samples: tuple[Samples, Samples] = samples_cpu, samples_gpu
batches: tuple[CpuBatches, Batches] = batches_cpu, batches_gpu
betweenness: tuple[CpuBetweenness, Betweenness] = betweenness_cpu, betweenness_gpu
cc: tuple[Cc, Cc] = cc_cpu, cc_gpu
kcore: tuple[Kcore, Kcore] = kcore_cpu, kcore_gpu
cores: tuple[Cores, Cores] = cores_cpu, cores_gpu
triangles: tuple[Triangles, Triangles] = triangles_cpu, triangles_gpu
truss: tuple[Truss, Truss] = truss_cpu, truss_gpu
communities: tuple[Communities, Communities] = communities_cpu, communities_gpu
bfs: tuple[Bfs, Bfs] = bfs_cpu, bfs_gpu
sssp: tuple[Sssp, Sssp] = sssp_cpu, sssp_gpu
edges: tuple[Edges, Edges] = edges_cpu, edges_gpu
drains: tuple[Drains, Drains] = drains_cpu, drains_gpu
edge_list: tuple[EdgeList, EdgeList] = edge_list_cpu, edge_list_gpu
