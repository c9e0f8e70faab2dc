"""Files written as research repositories publish them: voices, series, images, few shots, clicks, texts."""

from benchmarks.port_case import PortCase

import numpy as np

CASES = {}


def _vc():
    g = np.random.default_rng(31)
    return {
        "mel": g.standard_normal((2, 30, 20)),
        "lengths": np.array([30, 22]),
        "ref_mel": g.standard_normal((2, 18, 20)),
        "ref_lengths": np.array([14, 18]),
        "speaker_ids": np.array([3, 0]),
    }


CASES["AutoVC-like voice conversion (research style)"] = PortCase(
    "benchmarks.port_sources.autovc",
    "Generator(get_hparams(n_mels=20, dim_neck=4, dim_emb=16, dim_pre=24, dim_enc=24, freq=8, n_speakers=6, "
    "spk_hidden=16, spk_layers=2, dec_layers=2, postnet_dim=24))",
    _vc,
)


def _ode():
    g = np.random.default_rng(32)
    t, tp = np.sort(g.uniform(0, 1, 8)), np.sort(g.uniform(0, 1.5, 10))
    om = (g.random((3, 8, 5)) < 0.5).astype(np.float64)
    om[1, 6:] = 0
    return {
        "observed_data": g.standard_normal((3, 8, 5)),
        "observed_mask": om,
        "observed_tp": t,
        "data_to_predict": g.standard_normal((3, 10, 5)),
        "mask_predicted": (g.random((3, 10, 5)) < 0.6).astype(np.float64),
        "tp_to_predict": tp + 0.05,
        "labels": np.array([1, 0, 1]),
    }


CASES["Latent ODE with a neural CDE head (research style)"] = PortCase(
    "benchmarks.port_sources.latentode",
    "LatentODE(LatentODEConfig(input_dim=5, latent_dim=6, rec_dim=10, cde_dim=8, units=16, ode_layers=1, "
    "steps_per_interval=2))",
    _ode,
)


def _sr():
    g = np.random.default_rng(33)
    return (g.random((2, 3, 14, 18)), g.random((2, 3, 28, 36)))


CASES["Window-attention super-resolution (research style)"] = PortCase(
    "benchmarks.port_sources.winsr",
    "WinSR(dict(scale=2, window_size=4, embed_dim=24, depths=[2, 2], num_heads=[2, 4], num_feat=16, "
    "drop_path_rate=0.1))",
    _sr,
)


def _fewshot():
    g = np.random.default_rng(34)
    return (
        g.standard_normal((6, 3, 32, 32)),
        np.array([2, 0, 1, 1, 2, 0]),
        g.standard_normal((6, 3, 32, 32)),
        np.array([0, 1, 2, 2, 1, 0]),
        np.array([7, 3, 9, 9, 3, 7]),
    )


CASES["Few-shot classification with a relation network (research style)"] = PortCase(
    "benchmarks.port_sources.relnet",
    "FewShotRelationModel(build_parser().parse_args(['--feature_dim', '16', '-w', '3', '-s', '2', "
    "'--image_size', '32', '--base_classes', '12']))",
    _fewshot,
)


def _ctr():
    g = np.random.default_rng(35)
    b, t = 6, 7
    keep = np.arange(t)[None] < np.array([7, 5, 3, 6, 1, 4])[:, None]
    ids = np.stack([g.integers(1, n, b) for n in (40, 60, 12, 24)], 1)
    x = np.concatenate(
        [
            ids,
            g.uniform(0, 90, (b, 1)),
            g.standard_normal((b, 3)),
            g.integers(1, 60, (b, t)) * keep,
            g.integers(1, 12, (b, t)) * keep,
        ],
        1,
    )
    return {"X": x.astype(np.float64), "y": np.array([1.0, 0, 0, 1, 0, 0])}


CASES["xDeepFM with DIN attention for click-through rates (research style)"] = PortCase(
    "benchmarks.port_sources.ctr",
    "xDeepInterest(default_features(40, 60, 12, 24, embedding_dim=8, maxlen=7), dnn_hidden_units=(32, 16), "
    "cin_layer_size=(12, 8), att_hidden_units=(16, 8), pos_weight=2.0, init_std=0.1)",
    _ctr,
)


def _summ():
    g = np.random.default_rng(36)
    src = g.integers(1, 80, (3, 6, 9))
    words = g.integers(2, 10, (3, 6))
    words[:, 0] = 9
    sents = np.array([6, 4, 5])
    keep = (np.arange(9) < words[..., None]) & (np.arange(6)[None, :, None] < sents[:, None, None])
    ref = g.integers(1, 80, (3, 12)) * (np.arange(12) < np.array([12, 8, 10])[:, None])
    labels = np.array([[1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0], [1, 0, 1, 0, 1, 0]])
    return {"src": src * keep, "labels": labels, "summary": ref}


CASES["Extractive summarization with a hierarchical encoder (research style)"] = PortCase(
    "benchmarks.port_sources.extsum",
    "HierarchicalSummarizer(SumConfig(vocab_size=80, embed_dim=12, kernel_sizes=[2, 3], n_kernels=6, "
    "word_hidden=8, hidden_size=16, n_heads=4, ff_size=32, max_sents=20, n_segments=4, pos_dim=8))",
    _summ,
)
