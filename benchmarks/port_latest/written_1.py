"""Files written as research repositories publish them: parsing, poses, signals, point clouds, video, graphs."""

from benchmarks.port_case import PortCase

import numpy as np


def _text2sql():
    r = np.random.default_rng(101)
    q = r.integers(1, 80, (2, 9))
    q[1, 7:] = 0
    cols = r.integers(1, 80, (2, 6, 3))
    cols[:, 1:4, 2] = 0
    cols[0, 4, 1:] = 0
    cols[1, 5] = 0
    tabs = r.integers(1, 80, (2, 3, 2))
    tabs[:, 0, 1] = 0
    tabs[1, 2] = 0
    fk = np.zeros((2, 6, 6), dtype=bool)
    fk[0, 3, 1] = True
    fk[1, 4, 2] = True
    mqc = r.integers(1, 3, (2, 9, 6)) * (r.random((2, 9, 6)) < 0.15)
    mqc[1, 7:] = 0
    mqc[1, :, 5] = 0
    mqt = r.integers(1, 3, (2, 9, 3)) * (r.random((2, 9, 3)) < 0.2)
    mqt[1, 7:] = 0
    mqt[1, :, 2] = 0
    kinds = np.array([[1, 1, 2, 3, 1, 2, 3], [1, 1, 1, 2, 3, 0, 0]])
    idx = np.array([[0, 3, 2, 0, 11, 4, 1], [0, 5, 7, 3, 1, 0, 0]])
    par = np.array([[0, 1, 2, 2, 1, 5, 5], [0, 1, 2, 3, 3, 0, 0]])
    used = np.zeros((2, 9), dtype=np.int64)
    used[0, [2, 4, 6, 7]] = 1
    used[1, [3, 7]] = 1
    return {
        "question": q,
        "columns": cols,
        "tables": tabs,
        "col_table": np.array([[-1, 0, 0, 1, 1, 2], [-1, 0, 0, 1, 1, -1]]),
        "table_primary": np.array([[1, 3, 5], [1, 3, -1]]),
        "foreign_keys": fk,
        "match_qc": mqc.astype(np.int64),
        "match_qt": mqt.astype(np.int64),
        "action_kinds": kinds,
        "action_indices": idx,
        "action_parents": par,
        "used_schema": used,
    }


def _pose():
    r = np.random.default_rng(102)
    base = 0.4 * r.standard_normal((2, 1, 17, 3))
    pose = base + 0.05 * np.cumsum(r.standard_normal((2, 9, 17, 3)), axis=1)
    valid = np.ones((2, 9), dtype=np.int64)
    valid[1, 7:] = 0
    return {
        "inputs_2d": pose[..., :2] / (4 + pose[..., 2:]) + 0.01 * r.standard_normal((2, 9, 17, 2)),
        "confidence": r.uniform(0.3, 1.0, (2, 9, 17)),
        "valid": valid,
        "inputs_3d": pose,
    }


def _ecg():
    r = np.random.default_rng(103)
    t = np.arange(240)
    beat = np.exp(-0.5 * (((t % 60) - 30) / 3.0) ** 2)
    sig = (
        r.standard_normal((3, 12, 1)) * beat
        + 0.1 * r.standard_normal((3, 12, 240))
        + 0.2 * r.standard_normal((3, 12, 1))
    )
    lengths = np.array([240, 200, 152])
    for i, n in enumerate(lengths):
        sig[i, :, n:] = 0
    labels = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]])
    scored = np.ones((3, 6), dtype=np.int64)
    scored[2, 3] = 0
    demo = r.standard_normal((3, 4))
    demo[1, 0] = np.nan
    return {
        "signal": sig,
        "lengths": lengths,
        "demographics": demo,
        "labels": labels,
        "scored": scored,
    }


def _rotation(r, n, angle):
    out = []
    for _ in range(n):
        x, y, z = r.uniform(0.2, 1, 3) * angle
        rx = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
        ry = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
        rz = np.array([[np.cos(z), -np.sin(z), 0], [np.sin(z), np.cos(z), 0], [0, 0, 1]])
        out.append(rx @ ry @ rz)
    return np.stack(out)


def _dcp():
    r = np.random.default_rng(104)
    src = r.standard_normal((3, 3, 40)) * np.array([1.0, 0.6, 0.3])[None, :, None]
    rot, trans = _rotation(r, 3, np.pi / 4), r.uniform(-0.5, 0.5, (3, 3))
    tgt = rot @ src + trans[:, :, None]
    tgt = np.stack([t[:, r.permutation(40)] for t in tgt]) + 0.01 * r.standard_normal((3, 3, 40))
    return (src, tgt, rot, trans)


def _vfi():
    r = np.random.default_rng(105)
    y, x = np.mgrid[0:36, 0:44]
    f, p = r.uniform(0.1, 0.5, (2, 3, 4, 2)), r.uniform(0, 6, (2, 3, 4))
    v = r.uniform(-3, 3, (2, 1, 1, 2))

    def frame(t):
        phase = f[..., 0, None, None] * (x - t * v[..., 0, None, None]) + f[..., 1, None, None] * (
            y - t * v[..., 1, None, None]
        )
        return (
            0.5
            + 0.11 * np.sin(phase + p[..., None, None]).sum(2)
            + 0.01 * r.standard_normal((2, 3, 36, 44))
        )

    t = np.array([0.5, 0.25])
    mid = np.stack([frame(t[i])[i] for i in range(2)])
    return {
        "img0": frame(0.0).clip(0, 1),
        "img1": frame(1.0).clip(0, 1),
        "timestep": t,
        "gt": mid.clip(0, 1),
    }


def _graphcl():
    r = np.random.default_rng(106)
    sizes = [6, 9, 5, 7]
    src, dst, batch, start = [], [], [], 0
    for g, n in enumerate(sizes):
        pairs = {(i, i + 1) for i in range(n - 1)} | {
            tuple(sorted(p)) for p in r.integers(0, n, (4, 2)).tolist() if p[0] != p[1]
        }
        for i, j in sorted(pairs):
            src += [start + i, start + j]
            dst += [start + j, start + i]
        batch += [g] * n
        start += n
    kind = np.repeat(r.integers(0, 3, len(src) // 2), 2)
    x = np.concatenate([np.eye(5)[r.integers(0, 5, start)], r.standard_normal((start, 3))], axis=1)
    return {
        "x": x,
        "edge_index": np.array([src, dst], dtype=np.int64),
        "edge_type": kind.astype(np.int64),
        "batch": np.array(batch, dtype=np.int64),
        "y": np.array([1, 0, -1, 2]),
    }


CASES = {
    "Text-to-SQL parser with a schema graph encoder (research style)": PortCase(
        "benchmarks.port_sources.text2sql",
        "LinkGraphSQL(ParserConfig(vocab_size=80, num_rules=15, embed_size=24, hidden_size=32, num_layers=2, num_heads=4, "
        "ffn_mult=2, decoder_size=32, action_size=16, type_size=8))",
        _text2sql,
    ),
    "2D to 3D human pose lifting with temporal convolutions and a transformer (research style)": PortCase(
        "benchmarks.port_sources.pose_lift",
        "TCFormer(get_args(frames=9, joint_dim=8, channel=32, depth=2, heads=2, filter_widths='3,3'))",
        _pose,
    ),
    "ECG arrhythmia classifier (research style)": PortCase(
        "benchmarks.port_sources.ecg",
        "ECGNet({'n_classes': 6, 'stem': {'channels': 16}, 'stages': [{'channels': 16, 'blocks': 1, 'stride': 1}, "
        "{'channels': 24, 'blocks': 2, 'stride': 2}], 'kernel_size': 5, 'se_reduction': 4, 'rnn_hidden': 12, "
        "'decoder_heads': 2, 'wide': {'n_features': 4, 'hidden': 8}}, class_counts=[900, 120, 60, 300, 45, 210])",
        _ecg,
    ),
    "Point cloud registration by an iterative deep closest point (research style)": PortCase(
        "benchmarks.port_sources.dcp",
        "DCP(default_args(emb_dims=32, k=6, n_heads=2, ff_dims=48, n_iters=2, n_keypoints=28, cycle=True))",
        _dcp,
    ),
    "Video frame interpolation with distilled intermediate flow (research style)": PortCase(
        "benchmarks.port_sources.vfi",
        "FrameInterpolator(VFIConfig(scales=(2, 1), flow_widths=(24, 16), flow_depth=2, context_width=4, context_levels=3, "
        "pyramid_levels=3, census_patch=5))",
        _vfi,
    ),
    "Contrastive learning on graphs with a momentum encoder (research style)": PortCase(
        "benchmarks.port_sources.graphcl",
        "GraphDuo(arg_parse(['--num-features', '8', '--num-edge-types', '3', '--num-classes', '3', '--hidden-dim', '12', "
        "'--num-gc-layers', '2', '--proj-dim', '16', '--readout', 'attn']))",
        _graphcl,
    ),
}
